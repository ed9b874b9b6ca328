/**
 * How far the product scales. Writes docs/scale.json, from which `sim/scale` computes the tables and plots of docs/scale.md.
 *
 *   agents     one real agent in clusters of up to 5,000 nodes, 250,000 pods and 10,000 policies, on a real etcd
 *   many       200 agents with 10,000 pods in one process, on a datastore that counts
 *   fanOut     what a watcher costs a real etcd
 *   apiFanOut  what a watcher costs a real kube-apiserver
 *   restart    500 replicas on a real kube-apiserver that is started again; needs BUN_CONFIG_MAX_HTTP_REQUESTS=30000
 *   real       20 real agents with real pods on one machine, on one real etcd
 *   tenants    one real agent with the large policies of some tenants, and the changes of others
 *
 * SCALE_PARTS="many fanOut" measures only these, SCALE_PARTS="page" nothing: it writes the page again. SCALE_NODES="500": one
 * real agent in a cluster of this size only. SCALE_AGENTS="40": so many agents in one process. SCALE_RESTART="before" stores the
 * restart as that of a release before its lists were spread.
 */
import { identity } from "../src/identity.ts";
import { hasEtcd } from "../test/support/etcd.ts";
import { startEtcdOnHost } from "../test/support/etcd-on-host.ts";
import type { Host } from "../test/support/host.ts";
import { apiServerProblem } from "../test/support/kube-apiserver.ts";
import { LOAD_NODE } from "../test/support/policy-load.ts";
import { onPrivateHost } from "./support/private-host.ts";
import { prepareProduct } from "./support/product-candidates.ts";
import { buildProduct } from "./support/programs.ts";
import { measureAgent } from "./support/scale-agent.ts";
import { measureApiFanOut } from "./support/scale-api-fan-out.ts";
import { openScaleEtcd, pidOf } from "./support/scale-etcd.ts";
import { measureFanOut } from "./support/scale-fan-out.ts";
import { measureMany } from "./support/scale-many.ts";
import { measureRealAgents } from "./support/scale-real.ts";
import { measureRestart } from "./support/scale-restart.ts";
import { writeAgent, writePart, writeRestart, writeScalePage } from "./support/scale-results.ts";
import { measureTenants } from "./support/scale-tenants.ts";

const PARTS = (process.env["SCALE_PARTS"] ?? "agents many fanOut apiFanOut real tenants").split(" ");
const SIZES = (process.env["SCALE_NODES"] ?? "500 1000 5000").split(" ").map(Number);
const AGENTS = Number(process.env["SCALE_AGENTS"] ?? 200);
const PODS_PER_NODE = 50;
const POLICIES_PER_NODE = 2;
const ROUNDS = Math.min(Number(process.env["BENCH_ROUNDS"] ?? 20), 20);
/** Twice as long as anything that an agent does from time to time. */
const IDLE_SECONDS = 180;
const UPGRADES_PER_SECOND = 200;
const WATCHERS = [0, 20, 200];
const FAN_OUTS = [
  { writes: 500, recordsPerWrite: 1 },
  { writes: 10, recordsPerWrite: 100 },
];
const API_WRITES = 500;
const RESTART = { replicas: 500, nodes: 500 };
const REAL = { nodes: 20, podsPerNode: 10 };

type Prepared = { readonly folder: string } & (
  | { readonly part: "agents"; readonly nodes: number; readonly endpoint: string }
  | { readonly part: "real" }
  | { readonly part: "tenants"; readonly endpoint: string }
);

const isInside = process.env["VT_BENCHMARK"] !== undefined;
const problem = hasEtcd ? undefined : "needs etcd";
if (isInside) await onHost(async () => ({ part: "real", folder: "" }));
else {
  if (PARTS.includes("many")) await writePart("many", await measureMany(sizeOf(AGENTS)));
  if (PARTS.includes("fanOut") && hasEtcd) await writePart("fanOut", await measureFanOut(WATCHERS, FAN_OUTS));
  if (PARTS.includes("apiFanOut") && apiServerProblem() === undefined) {
    await writePart("apiFanOut", await measureApiFanOut(WATCHERS, API_WRITES));
  }
  if (PARTS.includes("restart") && apiServerProblem() === undefined) {
    await writeRestart(process.env["SCALE_RESTART"] ?? "since", await measureRestart(RESTART));
  }
  if (PARTS.includes("real")) await onHost(async () => ({ part: "real", folder: await buildProduct() }));
  if (PARTS.includes("tenants")) {
    await onHost(async (host) => ({ part: "tenants", ...(await prepareNode(host, LOAD_NODE)) }));
  }
  if (PARTS.includes("agents")) {
    for (const nodes of SIZES) {
      await onHost(async (host) => ({ part: "agents", nodes, ...(await prepareNode(host)) }));
    }
  }
  await writeScalePage();
}

function onHost(prepare: (host: Host) => Promise<Prepared>): Promise<void> {
  return onPrivateHost<Prepared>(import.meta.path, { problem, prepare, measure });
}

async function measure(prepared: Prepared): Promise<void> {
  const { folder } = prepared;
  const plan = { folder, rounds: ROUNDS, idleSeconds: IDLE_SECONDS };
  if (prepared.part === "real") await writePart("real", await measureRealAgents({ ...plan, ...REAL }));
  else if (prepared.part === "tenants") await writePart("tenants", await measureTenants(prepared));
  else {
    const etcd = await openScaleEtcd(prepared.endpoint, pidOf("etcd"));
    const size = sizeOf(prepared.nodes);
    const found = await measureAgent({ ...plan, etcd, size, upgradesPerSecond: UPGRADES_PER_SECOND });
    await writeAgent(`${prepared.nodes} nodes`, found);
  }
  process.exit(0);
}

function sizeOf(nodes: number) {
  return { nodes, podsPerNode: PODS_PER_NODE, policies: nodes * POLICIES_PER_NODE };
}

/** A host with an etcd that is initialized, and with the network config of the measured node. */
async function prepareNode(host: Host, node = "node-0") {
  const folder = await buildProduct();
  const endpoint = await startEtcdOnHost(host);
  const { name, cniVersion, ...plugin } = JSON.parse(
    (
      await prepareProduct(host, {
        ...{ name: identity.product, folder, cidr: "192.168.0.0/16", ipam: "own", node },
        datastore: { datastore_type: "etcdv3", etcd_endpoints: endpoint },
      })
    ).config,
  );
  const list = { name, cniVersion, plugins: [{ ...plugin, policy: { type: "k8s" } }] };
  host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify(list));
  return { folder, endpoint };
}
