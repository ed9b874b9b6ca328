/**
 * What attachments can leave behind on a private host. A test records the traces
 * before and expects the same ones afterwards.
 */
import { expect } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { clusterSet } from "../../src/firewall/guard-table.ts";
import { identity } from "../../src/identity.ts";
import { BOOT_TIME } from "./boot-time.ts";
import type { Host } from "./host.ts";
import type { NetworkUnderTest } from "./network-under-test.ts";
import { pollUntil } from "./poll.ts";
import { routesOfPods } from "./routes-of-pods.ts";

export interface Traces {
  readonly links: readonly string[];
  readonly routes: readonly string[];
  /** Rules and map elements of host ports. */
  readonly hostPorts: readonly string[];
  readonly namespaces: readonly string[];
  readonly mounts: readonly string[];
  readonly processes: readonly string[];
  /** Results in libcni's cache. */
  readonly cachedResults: readonly string[];
  /** Addresses and endpoints that the network has recorded. */
  readonly kept: readonly string[];
}

export async function tracesOf(host: Host, network: NetworkUnderTest): Promise<Traces> {
  const kept = await network.kept(host);
  const [links, routes, rules, processes] = await Promise.all([
    host.must(["ip", "-o", "link"]),
    routesOfPods(host),
    host.must(["nft", "list", "ruleset"]),
    host.must(["ps", "-eo", "etimes=,comm="]),
  ]);
  return {
    links: linesOf(links).map((line) => line.split(": ")[1] ?? line),
    routes: routes.map((route) => route.trim()),
    hostPorts: linesOf(withoutClusterSets(rules)).filter((line) => /CNI-DN-|elements = /.test(line)),
    namespaces: filesOf(host, "/run/netns"),
    mounts: mountsOf(host),
    processes: processesIn(processes),
    cachedResults: filesOf(host, "/var/lib/cni/results"),
    kept,
  };
}

/** Fails unless the traces soon equal those before: shims and monitors end shortly after their client. */
export async function expectTraces(host: Host, network: NetworkUnderTest, before: Traces): Promise<void> {
  let after = before;
  const same = async () => {
    after = await tracesOf(host, network);
    return Bun.deepEquals(after, before);
  };
  await pollUntil(same, "the traces to vanish").catch(() => expect(after).toEqual(before));
}

/** The addresses of pools and nodes, or all if no agent runs, belong to the guard table, which stays. */
function withoutClusterSets(rules: string): string {
  return rules.replace(new RegExp(`set (?:${clusterSet(4)}|${clusterSet(6)}) \\{.*?\\n\\t\\}`, "gs"), "");
}

/** Processes of the host itself and of this inspection; "exe": the admin tool, which the node agent runs at its start. */
const OWN_PROCESSES = new Set(["sh", "cat", "nsenter", "timeout", "ps", "ip", "nft", "exe"]);

/** A kubelet removes old sandboxes every minute and calls DEL for them once more: such calls are not left behind. */
const PLUGINS = new Set([identity.product, "portmap", "bandwidth", "loopback"]);
const LONGEST_CALL_SECONDS = 10;

/** `text`: lines of age in seconds and name. */
function processesIn(text: string): readonly string[] {
  const all = linesOf(text).map((line) => {
    const [seconds = "", ...name] = line.split(/\s+/);
    return { seconds: Number(seconds), name: name.join(" ") };
  });
  return all
    .filter(({ name }) => !OWN_PROCESSES.has(name))
    .filter(({ seconds, name }) => seconds > LONGEST_CALL_SECONDS || !PLUGINS.has(name))
    .map(({ name }) => name)
    .sort();
}

function linesOf(text: string): readonly string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .sort();
}

function filesOf(host: Host, directory: string): readonly string[] {
  const outside = host.view(directory);
  return existsSync(outside) ? readdirSync(outside).sort() : [];
}

/** Without the mounts that a client creates once for itself, that of the boot time, and those of the real host that the private one hides. */
function mountsOf(host: Host): readonly string[] {
  return readFileSync(host.view("/proc/1/mounts"), "utf8")
    .split("\n")
    .map((line) => line.split(" ")[1] ?? "")
    .filter((target) => existsSync(host.view(target)))
    .filter((target) => target !== "/run/netns" && target !== BOOT_TIME && !target.endsWith("/podman-graph/overlay"))
    .sort();
}
