/** The steps of the demo, in order. A step fails if its result is not as expected. */
import { formatTable } from "../../src/admin/terminal/table.ts";
import { identity } from "../../src/identity.ts";
import { pollUntil } from "../../test/support/poll.ts";
import { routesOfPods } from "../../test/support/routes-of-pods.ts";
import { type DemoEnvironment, NODE } from "./environment.ts";
import type { Output, StepResult } from "./output.ts";
import { reachOutside } from "./outside.ts";
import { namespaces, type Pod, type PodStarter, podStarter } from "./pod-starters.ts";
import { closeByPolicy, explainPolicy, openByLabel, recordFlows, showDenied, startAgent } from "./policy.ts";
import { openHostPort, shapePod } from "./ports.ts";
import { addressOf, pingAll, transferFile } from "./traffic.ts";

const POOLS = { "demo-ipv4": "10.244.0.0/16", "demo-ipv6": "fd24:4::/112" };
const NAMES = ["web", "shop", "store"];

export async function runSteps(demo: DemoEnvironment, { step }: Output): Promise<void> {
  const starter = podStarter(demo);
  await step("Datastore and two IP pools", () => prepareDatastore(demo));
  const { pods } = await step("Three pods", () => startPods(starter));
  await step("IPv4 pings", () => pingAll(demo, pods, 4));
  await step("IPv6 pings", () => pingAll(demo, pods, 6));
  await step("File transfer over HTTP", () => transferFile(demo, pods));
  await step("Outside, through NAT", () => reachOutside(demo, pods));
  await step("Host port", () => openHostPort(demo));
  await step("Bandwidth limit", () => shapePod(demo));
  await step(`${identity.adminTool} ipam show`, () => showAddresses(demo));
  await step("CHECK finds a broken route", () => breakRoute(demo, pods));
  await step("Another ADD repairs it", () => repairByAdd(demo, pods));
  await step("A pod ends without DEL", () => losePod(demo));
  await step("GC releases its addresses", () => collectGarbage(demo, pods));
  const { agent } = await step("Node agent", () => startAgent(demo));
  await step("Flows are recorded", () => recordFlows(demo));
  await step("A policy closes a port", () => closeByPolicy(demo, pods));
  await step(`${identity.adminTool} flows`, () => showDenied(demo, pods));
  await step(`${identity.adminTool} policy explain`, () => explainPolicy(demo, pods));
  await step("A label opens it", () => openByLabel(demo, pods, agent));
  await step("The pods are deleted", () => stopPods(starter, pods));
  await step("Nothing is left", () => expectNothingLeft(demo));
}

async function prepareDatastore({ admin, store }: DemoEnvironment): Promise<StepResult> {
  await admin(["datastore", "init"]);
  const apiVersion = `${identity.apiGroup}/v3`;
  const pools = Object.entries(POOLS).map(([name, cidr]) => ({
    kind: "IPPool",
    metadata: { name },
    spec: { cidr, natOutgoing: true },
  }));
  const node = { kind: "Node", metadata: { name: NODE }, spec: {} };
  const documents = [...pools, node].map((resource) => JSON.stringify({ apiVersion, ...resource }));
  await admin(["apply", "-f", "-"], documents.join("\n---\n"));
  const place = { embedded: "a SQLite file", etcd: "a real etcd" }[store];
  return { summary: `${place}, ${Object.values(POOLS).join(" and ")}` };
}

async function startPods(starter: PodStarter): Promise<StepResult & { readonly pods: readonly Pod[] }> {
  const pods = await Promise.all(NAMES.map((name) => starter.start(name)));
  const rows = pods.map((pod) => [pod.name, addressOf(pod, 4), addressOf(pod, 6), pod.hostLink]);
  return {
    pods,
    summary: `${starter.description}, started concurrently`,
    details: formatTable(["POD", "IPV4", "IPV6", "HOST INTERFACE"], rows),
  };
}

async function showAddresses({ admin }: DemoEnvironment): Promise<StepResult> {
  return { summary: "usage of pools and blocks", details: await admin(["ipam", "show", "--show-blocks"]) };
}

/** Deletes the default route of the second pod. */
async function breakRoute({ host, runtime }: DemoEnvironment, [, pod]: readonly Pod[]): Promise<StepResult> {
  if (pod === undefined) throw new Error("Cannot break a route: there is no second pod");
  await runtime.check(pod.attachment);
  await host.must(["nsenter", `--net=${pod.attachment.netns}`, "ip", "route", "delete", "default"]);
  const found = await runtime.check(pod.attachment).then(
    () => undefined,
    (failure: unknown) => (failure instanceof Error ? failure.message : String(failure)),
  );
  if (found === undefined) throw new Error(`CHECK reports no problem for "${pod.name}" although its route is gone`);
  return { summary: `"${pod.name}": ${found.replace(/^.*?: /, "")}` };
}

async function repairByAdd({ runtime }: DemoEnvironment, [, pod]: readonly Pod[]): Promise<StepResult> {
  if (pod === undefined) throw new Error("Cannot repair a route: there is no second pod");
  const { ips } = await runtime.add(pod.attachment);
  const same = ips.every(({ address }) => pod.addresses.includes(address.split("/")[0] ?? ""));
  if (!same) throw new Error(`ADD assigned other addresses to "${pod.name}" than before`);
  await runtime.check(pod.attachment);
  return { summary: "same addresses, and CHECK passes" };
}

/** Starts a fourth pod, deletes its namespace, and makes the runtime forget it. */
async function losePod(demo: DemoEnvironment): Promise<StepResult> {
  const { name, attachment, addresses } = await namespaces(demo).start("lost");
  await demo.host.must(["ip", "netns", "delete", `vt-${name}`]);
  demo.runtime.forget(attachment);
  const kept = await usedAddresses(demo);
  if (kept !== (NAMES.length + 1) * 2) throw new Error(`${kept} addresses are in use, not those of four pods`);
  return { summary: `${addresses.join(" and ")} are still in use` };
}

async function collectGarbage(demo: DemoEnvironment, pods: readonly Pod[]): Promise<StepResult> {
  await demo.runtime.gc(pods.map(({ attachment }) => attachment));
  const kept = await usedAddresses(demo);
  if (kept !== NAMES.length * 2) throw new Error(`${kept} addresses are in use, not those of three pods`);
  await pingAll(demo, pods, 4);
  return { summary: `${kept} addresses of ${NAMES.length} pods remain, and the pods still respond` };
}

async function stopPods(starter: PodStarter, pods: readonly Pod[]): Promise<StepResult> {
  await Promise.all(pods.map((pod) => starter.stop(pod)));
  return { summary: "DEL removes links, routes, addresses and endpoints" };
}

async function expectNothingLeft(demo: DemoEnvironment): Promise<StepResult> {
  // The links of a deleted namespace disappear a moment later.
  const gone = async () => (await linksAndRoutes(demo)).length === 0;
  await pollUntil(gone, "links and routes to disappear", 2_000).catch(() => {});
  const left = [...(await linksAndRoutes(demo)), ...(await records(demo))];
  if (left.length > 0) throw new Error(`Left behind: ${left.join("; ")}`);
  await demo.admin(["ipam", "check"]);
  return { summary: `0 links, 0 routes, 0 addresses, 0 endpoints; ${identity.adminTool} ipam check finds no problems` };
}

async function linksAndRoutes({ host }: DemoEnvironment): Promise<readonly string[]> {
  const [links, routes] = await Promise.all([host.must(["ip", "-o", "link"]), routesOfPods(host)]);
  return [...links.split("\n").filter((line) => line !== "" && !/^\d+: lo:/.test(line)), ...routes];
}

async function records(demo: DemoEnvironment): Promise<readonly string[]> {
  const used = await usedAddresses(demo);
  const endpoints = (await demo.admin(["get", "workloadendpoints", "-A", "-o", "name"])).trim();
  return [...(used === 0 ? [] : [`${used} addresses`]), ...(endpoints === "" ? [] : endpoints.split("\n"))];
}

async function usedAddresses({ admin }: DemoEnvironment): Promise<number> {
  const { pools } = JSON.parse(await admin(["ipam", "show", "-o", "json"])) as { pools: { used: number }[] };
  return pools.reduce((sum, { used }) => sum + used, 0);
}
