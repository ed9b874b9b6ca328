/** The steps of the demo of a cluster, in their order: each shows one thing, or fails. */
import { formatTable } from "../../../src/admin/terminal/table.ts";
import { identity } from "../../../src/identity.ts";
import { ROUTE_PROTOCOL } from "../../../src/linux/rtnetlink/route.ts";
import { untilPings } from "../../../test/support/across-nodes.ts";
import { addressesOf } from "../../../test/support/kube-pods.ts";
import type { Output, StepResult } from "../output.ts";
import type { ClusterEnvironment, TwoNodes } from "./environment.ts";
import { createInstallation, deleteInstallation, startOperator } from "./install.ts";
import { closeByPolicy, explainPolicy, openByPolicy } from "./policy.ts";
import { reachService } from "./service.ts";
import { restartAgents } from "./upgrade.ts";

/** Pods by the node that they are on. */
const PODS = { "node-1": ["shop", "cart"], "node-2": ["web", "store"] } as const;

export async function runClusterSteps(demo: ClusterEnvironment, { step }: Output): Promise<void> {
  const first = await step("Node 1", () => addNode(demo, "node-1"));
  const second = await step("Node 2", () => addNode(demo, "node-2"));
  const nodes: TwoNodes = [first.node, second.node];
  await step("The operator", () => startOperator(demo));
  await step("An Installation", () => createInstallation(demo));
  await step("kubectl get nodes", () => showNodes(demo));
  await step("Four pods", () => startPods(demo));
  await step("IPv4 pings across nodes", () => pingAcross(demo, 0));
  await step("IPv6 pings across nodes", () => pingAcross(demo, 1));
  await step("Routes to the other node", () => showRoutes(nodes));
  await step(`${identity.adminTool} status`, () => showStatus(demo));
  await step("A Service", () => reachService(demo, nodes));
  await step("A policy closes a pod", () => closeByPolicy(demo));
  await step(`${identity.adminTool} policy explain`, () => explainPolicy(demo));
  await step("Another rule opens it", () => openByPolicy(demo));
  await step("Both agents are restarted", () => restartAgents(demo));
  await step("The pods are deleted", () => deletePods(demo));
  await step("The network is removed", () => deleteInstallation(demo, nodes));
}

async function addNode({ cluster }: ClusterEnvironment, name: string) {
  const node = await cluster.addNode(name);
  return { node, summary: `kubelet, containerd and kube-proxy, without a network: ${node.addresses.join(", ")}` };
}

async function showNodes({ cluster }: ClusterEnvironment): Promise<StepResult> {
  const columns = [
    "NAME:.metadata.name",
    "KUBELET:.status.nodeInfo.kubeletVersion",
    "RUNTIME:.status.nodeInfo.containerRuntimeVersion",
    'READY:.status.conditions[?(@.type=="Ready")].status',
    'ADDRESSES:.status.addresses[?(@.type=="InternalIP")].address',
  ];
  const details = await cluster.server.kubectl(["get", "nodes", `--output=custom-columns=${columns.join(",")}`]);
  return { summary: "both are Ready", details };
}

async function startPods({ pods }: ClusterEnvironment): Promise<StepResult> {
  const plans = Object.entries(PODS).flatMap(([nodeName, names]) =>
    names.map((name) => ({ name, labels: { app: name }, spec: { nodeName } })),
  );
  await pods.create(...plans);
  await pods.allReady(plans.length);
  const rows = await Promise.all(
    plans.map(async ({ name, spec }) => [name, spec.nodeName, ...addressesOf(await pods.get(name))]),
  );
  return { summary: "two on each node", details: formatTable(["POD", "NODE", "IPV4", "IPV6"], rows) };
}

/** Every pod pings those of the other node, by their address of this index. */
async function pingAcross({ pods }: ClusterEnvironment, index: number): Promise<StepResult> {
  const { "node-1": first, "node-2": second } = PODS;
  const times: number[] = [];
  for (const [sources, targets] of [
    [first, second],
    [second, first],
  ] as const) {
    const addresses = await Promise.all(targets.map(async (name) => addressesOf(await pods.get(name))[index] ?? ""));
    for (const from of sources) times.push(...(await untilPings(pods, from, addresses)));
  }
  const slowest = Math.max(...times).toFixed(2);
  return { summary: `${times.length} pairs responded, the slowest in ${slowest} ms` };
}

async function showRoutes([node]: TwoNodes): Promise<StepResult> {
  const commands = ["-4", "-6"].map((family) => node.host.must(["ip", family, "route"]));
  const routes = (await Promise.all(commands)).join("").split("\n");
  const isOurs = (route: string) => route.includes(" via ") && /proto (\d+|bird) /.test(route);
  const summary = `of ${node.name}: by ${identity.nodeAgent} (${ROUTE_PROTOCOL.own}), and by BGP`;
  return { summary, details: routes.filter(isOurs).join("\n") };
}

async function showStatus({ admin }: ClusterEnvironment): Promise<StepResult> {
  return { summary: "of components and nodes", details: await admin("status") };
}

async function deletePods({ admin, pods }: ClusterEnvironment): Promise<StepResult> {
  await pods.removeAll();
  const found = await admin("ipam", "check", "--no-grace");
  if (!found.includes(": no problems")) throw new Error(found);
  return { summary: `${identity.adminTool} ipam check finds no problems` };
}
