/**
 * The product's node agent in the benchmark of policy. What a change must do to the kernel's table is computed by the same
 * compiler in the process of the benchmark, before the change is written; then only these elements and chains are read.
 */
import { join } from "node:path";
import { POLICY_TABLE } from "../../src/firewall/policy-table.ts";
import { identity } from "../../src/identity.ts";
import type { NetlinkSocket } from "../../src/linux/netlink-socket.ts";
import { commit } from "../../src/linux/nftables/commit.ts";
import { findElements, findTable, listRules } from "../../src/linux/nftables/read.ts";
import { ENDPOINT, NETWORK_POLICY, PROFILE } from "../../src/model/kinds.ts";
import { PolicyCompiler } from "../../src/policy/compile/compiler.ts";
import type { PolicyResources } from "../../src/policy/judge/resources.ts";
import { TO_WORKLOADS } from "../../src/policy/render/base-chains.ts";
import { NODE_ENVIRONMENT } from "../../src/release/host-files.ts";
import { changesBetween, NO_RESOURCES } from "../../test/support/policy-changes.ts";
import { LOAD_NODE } from "../../test/support/policy-load.ts";
import type { EtcdRecord } from "./etcd-records.ts";
import type { LoadChange, LoadResource, PolicySystem } from "./policy-system.ts";

export function ownPolicySystem(folder: string, socket: NetlinkSocket, load: PolicyResources): PolicySystem {
  const compiler = new PolicyCompiler({ node: LOAD_NODE });
  compiler.update(changesBetween(NO_RESOURCES, load));
  compiler.takeDelta();
  const [someInterface] = compiler.table.sets.get(TO_WORKLOADS)?.elements.values() ?? [];
  return {
    name: identity.product,
    daemon: {
      command: [join(folder, identity.nodeAgent)],
      environment: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", ...NODE_ENVIRONMENT },
    },
    record: ownRecord,
    // The table is written in one batch.
    isLoaded: () =>
      findTable(socket, POLICY_TABLE) !== undefined &&
      someInterface !== undefined &&
      findElements(socket, POLICY_TABLE, TO_WORKLOADS, [someInterface.key])[0] !== undefined,
    prepare() {},
    observe(change) {
      const handlesOf = (chain: string) => listRules(socket, POLICY_TABLE, chain).map(({ handle }) => handle);
      compiler.update(changesOf(change));
      const { chains, elements } = compiler.takeDelta();
      const changed = Array.from(chains.keys(), (chain) => ({ chain, before: handlesOf(chain) }));
      const added = Array.from(elements, ([set, each]) => ({ set, keys: each.added.map(({ key }) => key) }));
      return () =>
        added.every(({ set, keys }) => !findElements(socket, POLICY_TABLE, set, keys).includes(undefined)) &&
        changed.every(({ chain, before }) => !Bun.deepEquals(handlesOf(chain), before));
    },
    clear: () =>
      commit(socket, [
        { kind: "add-table", table: POLICY_TABLE },
        { kind: "delete-table", table: POLICY_TABLE },
      ]),
  };
}

export function ownRecord(resource: LoadResource): EtcdRecord {
  const { name, namespace } = resource.metadata;
  const place = namespace === undefined ? { name } : { name, namespace };
  switch (resource.kind) {
    case "WorkloadEndpoint":
      return { key: ENDPOINT.key(place), value: ENDPOINT.codec.write(resource) };
    case "NetworkPolicy":
      return { key: NETWORK_POLICY.key(place), value: NETWORK_POLICY.codec.write(resource) };
    case "Profile":
      return { key: PROFILE.key(place), value: PROFILE.codec.write(resource) };
  }
}

function changesOf(change: LoadChange): Parameters<PolicyCompiler["update"]>[0] {
  if (change.kind !== "policy") return changesBetween(NO_RESOURCES, { ...NO_RESOURCES, endpoints: [change.after] });
  return changesBetween(
    { ...NO_RESOURCES, networkPolicies: [change.before] },
    { ...NO_RESOURCES, networkPolicies: [change.after] },
  );
}
