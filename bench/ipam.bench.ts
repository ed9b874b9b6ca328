/**
 * The IPAM plugin, with and without the node agent, compared with the peer's:
 * ADD and DEL on one etcd, one after another and fifty at once, and the number
 * of requests to etcd.
 */
import { join } from "node:path";
import { identity } from "../src/identity.ts";
import { countRequests } from "../test/support/etcd.ts";
import { startEtcdOnHost } from "../test/support/etcd-on-host.ts";
import type { Host } from "../test/support/host.ts";
import { runCommand } from "./support/command-candidate.ts";
import { runComparison } from "./support/comparison.ts";
import { ipamAddCandidate, ipamCall, ipamDelCandidate, type MeasuredIpam } from "./support/ipam-candidate.ts";
import { startNodeAgent } from "./support/node-agent.ts";
import { peerProgram, preparePeerCalico } from "./support/peer-calico.ts";
import { onPrivateHost } from "./support/private-host.ts";
import { buildProduct } from "./support/programs.ts";
import { report } from "./support/report.ts";

const AT_ONCE = 50;
const NODE = "here";
/** A node with an agent has no calls outside it; on one node, both would change each other's block. */
const NODE_WITH_AGENT = "here-with-agent";

interface Prepared {
  readonly etcdEndpoint: string;
  /** The directory of the product's programs. */
  readonly folder: string;
  readonly alone: readonly MeasuredIpam[];
  readonly served: MeasuredIpam;
}

await onPrivateHost(import.meta.path, {
  prepare: async (host): Promise<Prepared> => {
    const etcdEndpoint = await startEtcdOnHost(host);
    const folder = await buildProduct();
    await fillStore(host, join(folder, identity.adminTool), etcdEndpoint);
    return {
      etcdEndpoint,
      folder,
      alone: [
        ...(await calico(host, etcdEndpoint)),
        ours(folder, etcdEndpoint, { name: identity.ipamType, node: NODE }),
      ],
      served: ours(folder, etcdEndpoint, { name: `${identity.ipamType}, node agent`, node: NODE_WITH_AGENT }),
    };
  },
  measure: async ({ etcdEndpoint, folder, alone, served }) => {
    await using agent = await startNodeAgent(folder);
    const plugins = [...alone, { ...served, agent }];
    const baseline = alone.at(-1)?.name ?? "";
    const once = { baseline, rounds: 100 };
    const many = { baseline, rounds: 6, warmUpRounds: 1, concurrency: AT_ONCE };
    const atOnce = (make: typeof ipamAddCandidate) => plugins.map((plugin) => make(plugin, AT_ONCE));
    await report("ipam", [
      await runComparison({ ...once, title: "ADD", candidates: plugins.map((plugin) => ipamAddCandidate(plugin)) }),
      await runComparison({ ...once, title: "DEL", candidates: plugins.map((plugin) => ipamDelCandidate(plugin)) }),
      await runComparison({ ...many, title: "ADD", candidates: atOnce(ipamAddCandidate) }),
      await runComparison({ ...many, title: "DEL", candidates: atOnce(ipamDelCandidate) }),
    ]);
    console.log(await requestsTable(plugins, etcdEndpoint));
  },
});

async function fillStore(host: Host, admin: string, etcdEndpoint: string): Promise<void> {
  const environment = { DATASTORE_TYPE: "etcdv3", ETCD_ENDPOINTS: etcdEndpoint };
  const apiVersion = `${identity.apiGroup}/v3`;
  const resources = [
    { apiVersion, kind: "Node", metadata: { name: NODE }, spec: {} },
    { apiVersion, kind: "Node", metadata: { name: NODE_WITH_AGENT }, spec: {} },
    { apiVersion, kind: "IPPool", metadata: { name: "ours" }, spec: { cidr: "10.98.0.0/16" } },
  ];
  await host.must([admin, "datastore", "init"], { environment });
  const stdin = resources.map((resource) => JSON.stringify(resource)).join("\n---\n");
  await host.must([admin, "apply", "-f", "-"], { environment, stdin });
}

function ours(
  folder: string,
  etcdEndpoint: string,
  { name, node }: { readonly name: string; readonly node: string },
): MeasuredIpam {
  const config = {
    name: name.replaceAll(/\W+/g, "-"),
    cniVersion: "1.0.0",
    type: identity.product,
    etcd_endpoints: etcdEndpoint,
    nodename: node,
    log_level: "ERROR",
    ipam: { type: identity.ipamType },
  };
  return { name, program: join(folder, identity.ipamType), config: JSON.stringify(config) };
}

async function calico(host: Host, etcdEndpoint: string): Promise<readonly MeasuredIpam[]> {
  const peer = await preparePeerCalico({ etcdEndpoint, cidr: "10.99.0.0/16", node: NODE }, host.must);
  if ("missing" in peer) {
    console.log(`skipped: ${peer.missing}`);
    return [];
  }
  return [{ name: "calico-ipam 3.31.0", program: peerProgram(peer, "calico-ipam"), config: peer.config }];
}

/** The requests that etcd counted for one typical ADD and its DEL. */
async function requestsTable(plugins: readonly MeasuredIpam[], endpoint: string): Promise<string> {
  const rows: string[] = [];
  for (const plugin of plugins) {
    const cells: string[] = [];
    for (const command of ["ADD", "DEL"] as const) {
      const before = await countRequests(endpoint);
      await runCommand(ipamCall(plugin, command, { round: 2_000_000 }, 0));
      const after = await countRequests(endpoint);
      const counts = Object.entries(after).map(([method, count]) => ({ method, count: count - (before[method] ?? 0) }));
      const total = counts.reduce((sum, { count }) => sum + count, 0);
      const parts = counts.filter(({ count }) => count > 0).map(({ method, count }) => `${count} ${method}`);
      cells.push(`${total} (${parts.join(", ")})`);
    }
    rows.push(`| ${[plugin.name, ...cells].join(" | ")} |`);
  }
  return ["\nRequests to etcd", "", "| candidate | ADD | DEL |", "|---|---|---|", ...rows, ""].join("\n");
}
