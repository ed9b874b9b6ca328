/** The demo's steps in their order. A step that sees anything but what it expects fails. */
import { formatTable } from "../../src/admin/table.ts";
import { identity } from "../../src/identity.ts";
import { pollUntil } from "../../test/support/poll.ts";
import { namespaces, type Pod, type PodMaker, podMaker } from "./pods.ts";
import { openHostPort, shapePod } from "./ports.ts";
import type { Screen, Seen } from "./screen.ts";
import { NODE, type Stage } from "./stage.ts";
import { addressOf, pingAll, transferFile } from "./traffic.ts";

const POOLS = { "demo-ipv4": "10.244.0.0/16", "demo-ipv6": "fd24:4::/112" };
const NAMES = ["web", "shop", "store"];

export async function play(stage: Stage, { step }: Screen): Promise<void> {
  const maker = podMaker(stage);
  await step("A datastore and two pools", () => prepareDatastore(stage));
  const { pods } = await step("Three pods", () => startPods(maker));
  await step("IPv4 pings", () => pingAll(stage, pods, 4));
  await step("IPv6 pings", () => pingAll(stage, pods, 6));
  await step("A file over HTTP", () => transferFile(stage, pods));
  await step("A host port", () => openHostPort(stage));
  await step("A shaped pod", () => shapePod(stage));
  await step(`${identity.adminTool} ipam show`, () => showAddresses(stage));
  await step("CHECK finds a broken route", () => breakRoute(stage, pods));
  await step("ADD once more mends it", () => mendByAdd(stage, pods));
  await step("A pod dies without its DEL", () => losePod(stage));
  await step("GC gives back what it left", () => collectGarbage(stage, pods));
  await step("The pods end", () => stopPods(maker, pods));
  await step("Nothing is left", () => expectNothingLeft(stage));
}

async function prepareDatastore({ admin, store }: Stage): Promise<Seen> {
  await admin(["datastore", "init"]);
  const apiVersion = `${identity.apiGroup}/v3`;
  const pools = Object.entries(POOLS).map(([name, cidr]) => ({ kind: "IPPool", metadata: { name }, spec: { cidr } }));
  const node = { kind: "Node", metadata: { name: NODE }, spec: {} };
  const documents = [...pools, node].map((resource) => JSON.stringify({ apiVersion, ...resource }));
  await admin(["apply", "-f", "-"], documents.join("\n---\n"));
  const place = { embedded: "a SQLite file", etcd: "a real etcd" }[store];
  return { seen: `${place}, ${Object.values(POOLS).join(" and ")}` };
}

async function startPods(maker: PodMaker): Promise<Seen & { readonly pods: readonly Pod[] }> {
  const pods = await Promise.all(NAMES.map((name) => maker.start(name)));
  const rows = pods.map((pod) => [pod.name, addressOf(pod, 4), addressOf(pod, 6), pod.hostLink]);
  return {
    pods,
    seen: `${maker.called}, all at once`,
    shown: formatTable(["POD", "IPV4", "IPV6", "LINK ON THE HOST"], rows),
  };
}

async function showAddresses({ admin }: Stage): Promise<Seen> {
  return { seen: "who uses how much", shown: await admin(["ipam", "show", "--show-blocks"]) };
}

/** Takes the default route out of the second pod. */
async function breakRoute({ host, runtime }: Stage, [, pod]: readonly Pod[]): Promise<Seen> {
  if (pod === undefined) throw new Error("Cannot break a route: there is no second pod");
  await runtime.check(pod.attachment);
  await host.must(["nsenter", `--net=${pod.attachment.netns}`, "ip", "route", "delete", "default"]);
  const found = await runtime.check(pod.attachment).then(
    () => undefined,
    (failure: unknown) => (failure instanceof Error ? failure.message : String(failure)),
  );
  if (found === undefined) throw new Error(`CHECK finds "${pod.name}" in order although its route is gone`);
  return { seen: `of "${pod.name}": ${found.replace(/^.*?: /, "")}` };
}

async function mendByAdd({ runtime }: Stage, [, pod]: readonly Pod[]): Promise<Seen> {
  if (pod === undefined) throw new Error("Cannot mend a route: there is no second pod");
  const { ips } = await runtime.add(pod.attachment);
  const same = ips.every(({ address }) => pod.addresses.includes(address.split("/")[0] ?? ""));
  if (!same) throw new Error(`ADD gave "${pod.name}" other addresses than before`);
  await runtime.check(pod.attachment);
  return { seen: `the same addresses, and CHECK finds nothing` };
}

/** A fourth pod whose namespace goes, and whose runtime forgets it. */
async function losePod(stage: Stage): Promise<Seen> {
  const { name, attachment, addresses } = await namespaces(stage).start("lost");
  await stage.host.must(["ip", "netns", "delete", `vt-${name}`]);
  stage.runtime.forget(attachment);
  const kept = await usedAddresses(stage);
  if (kept !== (NAMES.length + 1) * 2) throw new Error(`${kept} addresses are held, not those of four pods`);
  return { seen: `${addresses.join(" and ")} are still taken` };
}

async function collectGarbage(stage: Stage, pods: readonly Pod[]): Promise<Seen> {
  await stage.runtime.gc(pods.map(({ attachment }) => attachment));
  const kept = await usedAddresses(stage);
  if (kept !== NAMES.length * 2) throw new Error(`${kept} addresses are held, not those of three pods`);
  await pingAll(stage, pods, 4);
  return { seen: `${kept} addresses of ${NAMES.length} pods remain, and those still answer` };
}

async function stopPods(maker: PodMaker, pods: readonly Pod[]): Promise<Seen> {
  await Promise.all(pods.map((pod) => maker.stop(pod)));
  return { seen: "their DEL takes links, routes, addresses and endpoints away" };
}

async function expectNothingLeft(stage: Stage): Promise<Seen> {
  // A namespace that ends takes its links with it a moment later.
  const gone = async () => (await linksAndRoutes(stage)).length === 0;
  await pollUntil(gone, "links and routes to vanish", 2_000).catch(() => {});
  const left = [...(await linksAndRoutes(stage)), ...(await records(stage))];
  if (left.length > 0) throw new Error(`Left behind: ${left.join("; ")}`);
  await stage.admin(["ipam", "check"]);
  return { seen: `0 links, 0 routes, 0 addresses, 0 endpoints; ${identity.adminTool} ipam check is content` };
}

async function linksAndRoutes({ host }: Stage): Promise<readonly string[]> {
  const [links, ...routes] = await Promise.all([
    host.must(["ip", "-o", "link"]),
    host.must(["ip", "-4", "route", "show", "table", "all"]),
    host.must(["ip", "-6", "route", "show", "table", "all"]),
  ]);
  const lines = (text: string) => text.split("\n").filter((line) => line !== "");
  return [
    ...lines(links).filter((line) => !/^\d+: lo:/.test(line)),
    ...routes.flatMap(lines).filter((line) => !line.includes(" dev lo ")),
  ];
}

async function records(stage: Stage): Promise<readonly string[]> {
  const used = await usedAddresses(stage);
  const endpoints = (await stage.admin(["get", "workloadendpoints", "-A", "-o", "name"])).trim();
  return [...(used === 0 ? [] : [`${used} addresses`]), ...(endpoints === "" ? [] : endpoints.split("\n"))];
}

async function usedAddresses({ admin }: Stage): Promise<number> {
  const { pools } = JSON.parse(await admin(["ipam", "show", "-o", "json"])) as { pools: { used: number }[] };
  return pools.reduce((sum, { used }) => sum + used, 0);
}
