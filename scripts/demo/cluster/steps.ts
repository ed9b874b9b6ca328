/** The steps of the demo of a cluster, in their order: each shows one thing, or fails. */
import { formatTable } from "../../../src/admin/table.ts";
import { identity } from "../../../src/identity.ts";
import { ROUTE_PROTOCOL } from "../../../src/linux/rtnetlink/route.ts";
import { untilPings } from "../../../test/support/across-nodes.ts";
import { addressesOf } from "../../../test/support/kube-pods.ts";
import { NAMESPACE } from "../../../test/support/pods-in-namespace.ts";
import { addProductNode, startProductControllers } from "../../../test/support/product-nodes.ts";
import type { Output, StepResult } from "../output.ts";
import type { ClusterEnvironment, TwoNodes } from "./environment.ts";
import { closeByPolicy, explainPolicy, openByPolicy } from "./policy.ts";
import { reachService } from "./service.ts";
import { restartAgents } from "./upgrade.ts";

/** Pods by the node that they are on. */
const PODS = { "node-1": ["shop", "cart"], "node-2": ["web", "store"] } as const;

export async function runClusterSteps(demo: ClusterEnvironment, { step }: Output): Promise<void> {
  await step("Controllers", () => startControllers(demo));
  const first = await step("Node 1", () => addNode(demo, "node-1"));
  const second = await step("Node 2", () => addNode(demo, "node-2"));
  const nodes: TwoNodes = [first.node, second.node];
  await step("kubectl get nodes", () => showNodes(demo));
  await step("Four pods", () => startPods(demo));
  await step("IPv4 pings across nodes", () => pingAcross(demo, 0));
  await step("IPv6 pings across nodes", () => pingAcross(demo, 1));
  await step("Routes to the other node", () => showRoutes(nodes));
  await step(`${identity.adminTool} node status`, () => showStatus(demo, nodes));
  await step("A Service", () => reachService(demo, nodes));
  await step("A policy closes a pod", () => closeByPolicy(demo));
  await step(`${identity.adminTool} policy explain`, () => explainPolicy(demo, nodes));
  await step("Another rule opens it", () => openByPolicy(demo));
  await step("Both agents are restarted", () => restartAgents(demo, nodes));
  await step("The pods are deleted", () => deletePods(demo, nodes));
}

async function startControllers({ cluster, store }: ClusterEnvironment): Promise<StepResult> {
  await startProductControllers(cluster, store);
  await cluster.server.createNamespace(NAMESPACE);
  return { summary: `${identity.controllers}, under its own role` };
}

async function addNode({ cluster }: ClusterEnvironment, name: string) {
  const node = await addProductNode(cluster, name);
  return { node, summary: `kubelet, containerd, kube-proxy, ${identity.nodeAgent}: ${node.node.addresses.join(", ")}` };
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
  return { summary: `${times.length} pairs responded through VXLAN, the slowest in ${slowest} ms` };
}

async function showRoutes([{ node }]: TwoNodes): Promise<StepResult> {
  const commands = ["-4", "-6"].map((family) =>
    node.host.must(["ip", family, "route", "show", "proto", String(ROUTE_PROTOCOL.own)]),
  );
  const routes = (await Promise.all(commands)).join("").split("\n");
  const details = routes.filter((route) => route.includes(" via ")).join("\n");
  return { summary: `written by ${identity.nodeAgent} of ${node.name}`, details };
}

async function showStatus({ cluster }: ClusterEnvironment, [{ node }]: TwoNodes): Promise<StepResult> {
  return { summary: `on ${node.name}`, details: await cluster.adminOn(node, ["node", "status"]) };
}

async function deletePods({ cluster, pods }: ClusterEnvironment, [{ node }]: TwoNodes): Promise<StepResult> {
  await pods.removeAll();
  const found = await cluster.adminOn(node, ["ipam", "check", "--no-grace"]);
  if (!found.includes(": no problems")) throw new Error(found);
  return { summary: `${identity.adminTool} ipam check finds no problems` };
}
