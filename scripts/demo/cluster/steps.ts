/** What the demo shows on a cluster with the network, in this order: each step shows one thing, or fails. */
import { formatTable } from "../../../src/admin/terminal/table.ts";
import { identity } from "../../../src/identity.ts";
import { ROUTE_PROTOCOL } from "../../../src/linux/rtnetlink/route.ts";
import { untilPings } from "../../../test/support/across-nodes.ts";
import { addressesOf } from "../../../test/support/kube-pods.ts";
import type { ClusterEnvironment } from "../../cluster/environment.ts";
import type { Output, StepResult } from "../output.ts";
import { closeByPolicy, explainPolicy, openByPolicy, showDenied } from "./policy.ts";
import { deleteInstallation } from "./remove-network.ts";
import { reachService } from "./service.ts";
import { restartAgents } from "./upgrade.ts";

/** Pods by the node that they are on. */
const PODS = { "node-1": ["shop", "cart"], "node-2": ["web", "store"] } as const;

export async function runClusterSteps(demo: ClusterEnvironment, { step }: Output): Promise<void> {
  await step("Four pods", () => startPods(demo));
  await step("IPv4 pings across nodes", () => pingAcross(demo, 0));
  await step("IPv6 pings across nodes", () => pingAcross(demo, 1));
  await step("Routes to the other node", () => showRoutes(demo));
  await step(`${identity.adminTool} status`, () => showStatus(demo));
  await step("A Service", () => reachService(demo));
  await step("A policy closes a pod", () => closeByPolicy(demo));
  await step(`${identity.adminTool} flows`, () => showDenied(demo));
  await step(`${identity.adminTool} policy explain`, () => explainPolicy(demo));
  await step("Another rule opens it", () => openByPolicy(demo));
  await step("Both agents are restarted", () => restartAgents(demo));
  await step("The pods are deleted", () => deletePods(demo));
  await step("The network is removed", () => deleteInstallation(demo));
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

async function showRoutes({ nodes: [node] }: ClusterEnvironment): Promise<StepResult> {
  if (node === undefined) throw new Error("The cluster has no node");
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
