/**
 * Network policy: the node agent beside Felix, Calico's, with the same load on the same etcd. Their starts take turns; then each
 * is measured at work and idle. After that the cost of the rules for packets.
 */
import { identity } from "../src/identity.ts";
import { openNetlinkSocket } from "../src/linux/netlink-socket.ts";
import { part } from "../test/parts/build.ts";
import { hasEtcd } from "../test/support/etcd.ts";
import { startEtcdOnHost } from "../test/support/etcd-on-host.ts";
import type { Host } from "../test/support/host.ts";
import { LOAD_NODE, policyLoad } from "../test/support/policy-load.ts";
import { putRecords } from "./support/etcd-records.ts";
import { felixPolicySystem } from "./support/felix-policy-system.ts";
import { ownPolicySystem } from "./support/own-policy-system.ts";
import { makePolicyLinks } from "./support/policy-links.ts";
import { measureSystem, type Start, startSystem } from "./support/policy-measurements.ts";
import { measurePassage, passageTable } from "./support/policy-passage.ts";
import type { PolicySystem } from "./support/policy-system.ts";
import { policyTable, type SystemResult } from "./support/policy-table.ts";
import { onPrivateHost } from "./support/private-host.ts";
import { prepareProduct } from "./support/product-candidates.ts";
import { buildProduct } from "./support/programs.ts";
import { writeResults } from "./support/report.ts";

const SIZE = { locals: 1_000, remotes: 10_000, policies: 1_000 };
const ROUNDS = Math.min(Number(process.env["BENCH_ROUNDS"] ?? 100), 100);
const STARTS = Math.min(ROUNDS, 3);
const IDLE_SECONDS = Math.min(ROUNDS, 20);

interface Prepared {
  /** The directory of the product's programs. */
  readonly folder: string;
  readonly etcdEndpoint: string;
  /** Felix, if it can be built here. */
  readonly felix: string | undefined;
}

await onPrivateHost(import.meta.path, {
  problem: hasEtcd ? undefined : "needs etcd",
  prepare: async (host): Promise<Prepared> => {
    const folder = await buildProduct();
    const etcdEndpoint = await startEtcdOnHost(host);
    await prepareOwn(host, folder, etcdEndpoint);
    return { folder, etcdEndpoint, felix: await prepareFelix(host, etcdEndpoint) };
  },
  measure: async ({ folder, etcdEndpoint, felix }) => {
    const load = policyLoad(SIZE);
    const socket = openNetlinkSocket("netfilter");
    const systems: readonly PolicySystem[] = [
      ...(felix === undefined
        ? []
        : [felixPolicySystem({ program: felix, etcdEndpoint, locals: SIZE.locals }, socket)]),
      ownPolicySystem(folder, socket, load),
    ];
    await makePolicyLinks(SIZE.locals + ROUNDS);
    const resources = [...load.profiles, ...load.endpoints, ...load.networkPolicies];
    for (const { record } of systems) await putRecords(etcdEndpoint, resources.map(record));
    const starts = new Map<string, Start[]>(systems.map(({ name }) => [name, []]));
    for (let round = 0; round < STARTS; round++) {
      for (const system of systems) {
        await using running = await startSystem(system);
        starts.get(system.name)?.push(running.start);
      }
    }
    const results: SystemResult[] = [];
    for (const system of systems) {
      const plan = { ...SIZE, etcdEndpoint, rounds: ROUNDS, idleSeconds: IDLE_SECONDS };
      results.push({
        name: system.name,
        starts: starts.get(system.name) ?? [],
        ...(await measureSystem(system, plan)),
      });
    }
    console.log(policyTable(results));
    const passages = await measurePassage({ rounds: ROUNDS });
    console.log(passageTable(passages));
    await writeResults("policy", { size: SIZE, results, passages });
  },
});

/** The config makes the agent find its datastore, and require policy. */
async function prepareOwn(host: Host, folder: string, endpoint: string): Promise<void> {
  const datastore = { datastore_type: "etcdv3", etcd_endpoints: endpoint };
  const settings = {
    name: identity.product,
    folder,
    datastore,
    cidr: "10.64.0.0/16",
    ipam: "own",
    node: LOAD_NODE,
  } as const;
  const { name, cniVersion, ...plugin } = JSON.parse((await prepareProduct(host, settings)).config);
  const plugins = [{ ...plugin, policy: { type: "k8s" } }];
  host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins }));
}

async function prepareFelix(host: Host, endpoint: string): Promise<string | undefined> {
  const [felix, calicoctl] = [await part("felix"), await part("calicoctl")];
  for (const each of [felix, calicoctl]) if ("missing" in each) console.log(`without Felix: ${each.missing}`);
  if ("missing" in felix || "missing" in calicoctl) return undefined;
  const environment = { DATASTORE_TYPE: "etcdv3", ETCD_ENDPOINTS: endpoint };
  const node = { apiVersion: "projectcalico.org/v3", kind: "Node", metadata: { name: LOAD_NODE }, spec: {} };
  // Creates the cluster information and the default tier too.
  await host.must([calicoctl.path, "apply", "--allow-version-mismatch", "-f", "-"], {
    environment,
    stdin: JSON.stringify(node),
  });
  return felix.path;
}
