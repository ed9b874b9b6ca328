/** With a process of its own as the collector, which writes down what it is told. */

import { heapStats } from "bun:jsc";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { seed } from "../../../test/support/ipam.ts";
import { pollUntil } from "../../../test/support/poll.ts";
import { openMemory } from "../../datastore/memory/memory.ts";
import { SYSTEM_CLOCK } from "../../datastore/replica/clock.ts";
import { startReplica } from "../../datastore/replica.ts";
import { type EndName, type FromCollector, serviceKey, type ToCollector } from "../../flows/collector-messages.ts";
import { ownSockets } from "../../linux/netlink-socket.ts";
import { globalNetworkSet } from "../../model/global-network-set.ts";
import {
  ENDPOINT,
  GLOBAL_NETWORK_SET,
  NETWORK_POLICY,
  NODE_AGENT_CONFIGURATION,
  type PublicKind,
} from "../../model/kinds.ts";
import { networkPolicy } from "../../model/network-policy.ts";
import {
  type NodeAgentConfigurationSpec,
  nodeAgentConfiguration,
  nodeAgentSettings,
} from "../../model/node-agent-configuration.ts";
import type { Resource } from "../../model/resource.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import { type FollowedNetwork, type NetworkValues, networkKinds } from "../network/followed-network.ts";
import type { FlowRuleListener, FlowRules, NumberedRule } from "../policy/flow-rules.ts";
import { StartRefused } from "../supervise.ts";
import { startCollector } from "./collector-process.ts";
import { flowParts } from "./flow-part.ts";
import { FlowsOfNode } from "./flows-of-node.ts";
import { switchedOffSince } from "./history/switched-off.ts";

/** Writes each line of its stdin to the file of that name, and what the file `NAME.say` contains to stdout. */
const WRITES_DOWN = `
const { appendFileSync, existsSync, readFileSync, renameSync } = require("node:fs");
const file = process.env.TOLD_FILE;
const say = (message) => process.stdout.write(JSON.stringify(message) + "\\n");
appendFileSync(file + ".starts", process.pid + "\\n");
if (!existsSync(file + ".silent")) say({ kind: "ready" });
process.on("SIGTERM", () => { appendFileSync(file + ".starts", "told to end\\n"); process.exit(0); });
setInterval(() => {
  if (!existsSync(file + ".silent")) say({ kind: "forget", keys: [] });
  if (!existsSync(file + ".say")) return;
  renameSync(file + ".say", file + ".said");
  process.stdout.write(readFileSync(file + ".said"));
}, 20);
process.stdin.on("data", (data) => appendFileSync(file, data));
`;
/** Is ready, and then reads nothing. */
const READS_NOTHING = `
const { appendFileSync } = require("node:fs");
appendFileSync(process.env.TOLD_FILE + ".starts", process.pid + "\\n");
setInterval(() => process.stdout.write(JSON.stringify({ kind: "ready" }) + "\\n"), 100);
`;

const NO_LOSSES = {
  ...{ kernelOverruns: 0, rulesUnknown: 3, overLimit: 0, overCapacity: 0 },
  ...{ deniedSuppressed: 0, namesUnknown: 0, notStored: 0, notLogged: 0, withoutCollector: 0 },
};

/** How fast the clock of the agent goes: a collector that hangs is noticed after half a minute. */
let speed = 1;
const clock = {
  elapsed: () => performance.now() * speed,
  wait: (milliseconds: number, signal: AbortSignal) => SYSTEM_CLOCK.wait(milliseconds / speed, signal),
  random: Math.random,
  now: () => new Date(),
};

let folder = "";
let store = openMemory();
let stop = new AbortController();
let running: Promise<unknown> = Promise.resolve();
let flows = new FlowsOfNode();
let log: string[] = [];
beforeEach(() => {
  folder = mkdtempSync(`${tmpdir()}/collector-`);
  speed = 1;
  [store, stop, flows, log] = [openMemory(), new AbortController(), new FlowsOfNode(), []];
});
afterEach(async () => {
  stop.abort();
  await running;
  rmSync(folder, { recursive: true });
});

const file = (name = "") => `${folder}/told${name}`;
const textIn = (name = "") => (existsSync(file(name)) ? readFileSync(file(name), "utf8") : "");

function told(): readonly ToCollector[] {
  const lines = textIn().split("\n").slice(0, -1);
  return lines.map((line) => JSON.parse(line) as ToCollector);
}

/** The last that was told of each key. */
function names(): ReadonlyMap<string, EndName> {
  return new Map(told().flatMap((message) => (message.kind === "names" ? message.names : [])));
}

function resources(): ReadonlyMap<string, string | undefined> {
  const all = told().flatMap((message) => (message.kind === "resources" ? message.resources : []));
  return new Map(all.map(({ kind, key, value }) => [`${kind} ${key}`, value]));
}

async function say(message: FromCollector): Promise<void> {
  await pollUntil(() => !existsSync(file(".say")), "the last words to be read");
  await Bun.write(file(".new"), `${JSON.stringify(message)}\n`);
  await Bun.$`mv ${file(".new")} ${file(".say")}`;
}

function put<R extends Resource>(kind: PublicKind<R>, ...resources: readonly R[]): Promise<void> {
  const changes = resources.map(
    (each) => ({ kind: "put", key: kind.key(each.metadata), value: kind.codec.write(each) }) as const,
  );
  return seed(store, ...changes);
}

async function remove(key: string): Promise<void> {
  const { answers } = await store.read([{ kind: "key", key }]);
  const revision = answers.flat()[0]?.revision ?? "";
  expect(await store.commit([{ kind: "delete", key, revision }])).toMatchObject({ ok: true });
}

function switchFlows(spec: NodeAgentConfigurationSpec): Promise<void> {
  return put(NODE_AGENT_CONFIGURATION, nodeAgentConfiguration.make({ name: "default" }, spec));
}

function pod(name: string, address: string, node = "here") {
  return workloadEndpoint.make(
    { name: `${node}-k8s-${name}-eth0`, namespace: "shop" },
    { node, ipNetworks: [address] },
  );
}

/** The part of the agent, with the memory store and the network interfaces of this machine. */
function start(program = WRITES_DOWN): void {
  const replica = startReplica<NetworkValues>(store, networkKinds("here"), { signal: stop.signal });
  const parts = partsOf(replica, () =>
    startCollector(["-e", program], { environment: { ...process.env, TOLD_FILE: file() } }),
  );
  running = Promise.all([parts[0]?.run(stop.signal), replica.ended]);
}

function partsOf(replica: FollowedNetwork["replica"], starter: FollowedNetwork["means"]["startCollector"]) {
  const followed = {
    ...{ replica, store, log: (message: string) => log.push(message) },
    network: { node: "here", orchestrator: {} },
    means: {
      ...{ clock, kernel: ownSockets, files: { runDirectory: folder, flowHistory: folder } },
      startCollector: starter,
    },
  } as unknown as FollowedNetwork;
  return flowParts(followed, flows);
}

function starts(): readonly string[] {
  return textIn(".starts").split("\n").slice(0, -1);
}

describe("the part that observes flows", () => {
  test("starts no collector while they are switched off, and shows no metrics", async () => {
    await put(ENDPOINT, pod("web", "10.0.0.1/32"));
    start();
    await switchFlows({ flows: "Disabled" });
    await pollUntil(() => switchedOffSince(folder) !== undefined, "the time since when they are switched off");

    expect([starts(), flows.metrics()]).toEqual([[], ""]);
  });

  test("tells settings, the names of this node and resources, and ends the collector when they are switched off", async () => {
    await put(ENDPOINT, pod("web", "10.0.0.1/32"));
    await put(ENDPOINT, pod("far", "10.0.0.2/32", "far"));
    const policy = networkPolicy.make({ name: "db", namespace: "shop" }, { tier: "default", ingress: [] });
    await put(NETWORK_POLICY, policy);
    await switchFlows({ flows: "Enabled", flowHistoryAge: "1h", flowLogFile: "/var/log/flows" });
    start();
    const key = `networkPolicies ${NETWORK_POLICY.key(policy.metadata)}`;
    await pollUntil(() => resources().get(key) !== undefined, "the policy to be told");

    expect(told().slice(0, 2)).toMatchObject([{ kind: "names" }, { kind: "settings" }]);
    expect(told()[1]).toEqual({
      kind: "settings",
      settings: {
        ...{ node: "here", vxlanPort: 4789, historyMegabytes: 100, historyMilliseconds: 3_600_000 },
        ...{ mostPerSecond: 500, logFile: "/var/log/flows" },
      },
    });
    expect(names().get("10.0.0.1")).toMatchObject({ kind: "pod", namespace: "shop", name: "web", isLocal: true });
    expect(names().get("127.0.0.1")).toEqual({ kind: "host", name: "here", node: "here", isLocal: true });
    expect(names().has("10.0.0.2")).toBe(false);
    expect(NETWORK_POLICY.codec.read(resources().get(key) ?? "", NETWORK_POLICY.key(policy.metadata))).toEqual(policy);

    await switchFlows({ flows: "Enabled", flowsPerSecond: 7 });
    await pollUntil(
      () => told().some((message) => message.kind === "settings" && message.settings.mostPerSecond === 7),
      "the new settings to be told",
    );
    expect(starts().length).toBe(1);
    await switchFlows({});
    await pollUntil(() => starts().at(-1) === "told to end", "the collector to end");
    await pollUntil(() => flows.metrics() === "", "the metrics of flows to go");
    await switchFlows({ flows: "Enabled" });
    await pollUntil(() => starts().length === 3, "another collector to start");
  });

  test("answers who has an address, tells changes, and forgets it", async () => {
    await put(ENDPOINT, pod("far", "10.0.0.2/32", "far"));
    await switchFlows({ flows: "Enabled" });
    start();
    const service = serviceKey("10.96.0.9", 6, 80);
    await say({ kind: "who", keys: ["10.0.0.2", "198.51.100.7", service] });
    await pollUntil(() => names().has(service), "the answers");
    expect(["10.0.0.2", "198.51.100.7", service].map((key) => names().get(key)?.kind)).toEqual([
      "pod",
      "outside",
      "outside",
    ]);

    await put(GLOBAL_NETWORK_SET, globalNetworkSet.make({ name: "partners" }, { nets: ["198.51.100.0/24"] }));
    await pollUntil(() => names().get("198.51.100.7")?.name === "partners", "the change");
    await say({ kind: "forget", keys: ["198.51.100.7", "10.0.0.2"] });
    await pollUntil(() => !existsSync(file(".say")), "it to be said");
    await say({ kind: "who", keys: ["198.51.100.8"] });
    await pollUntil(() => names().has("198.51.100.8"), "the later answer");
    await remove(GLOBAL_NETWORK_SET.key({ name: "partners" }));
    await pollUntil(() => names().get("198.51.100.8")?.kind === "outside", "the later change");
    expect(names().get("198.51.100.7")?.name).toBe("partners");
  });

  test("tells rules and counts of denied packets, and hands on which numbers are in use", async () => {
    await switchFlows({ flows: "Enabled" });
    const used: unknown[] = [];
    let listener: FlowRuleListener | undefined;
    let [packets, asked] = [7, 0];
    const rules = (all: readonly NumberedRule[]): FlowRules => ({
      ...{ settings: nodeAgentSettings([], "here"), labelsSince: 5, rulesWithRequests: () => [2] },
      rules: () => all,
      follow(given) {
        listener = given;
        return () => {};
      },
      noteUse: (since, numbers) => void used.push([since, numbers]),
      denied: () => {
        asked += 1;
        return [["tier default ingress default", packets]];
      },
    });
    const leave = flows.offerRules(
      rules([
        [1, "a"],
        [2, "b"],
      ]),
    );
    start();
    const all = () => {
      const now = new Map<number, string>();
      for (const message of told()) {
        if (message.kind === "rules") for (const [number, comment] of message.rules) now.set(number, comment);
        if (message.kind === "rules gone") for (const number of message.numbers) now.delete(number);
      }
      return Object.fromEntries(now);
    };
    const counts = () => told().flatMap((message) => (message.kind === "denied" ? message.counts : []));
    await pollUntil(() => Bun.deepEquals(all(), { 1: "a", 2: "b" }), "the rules");
    expect(told()).toContainEqual({ kind: "labels written", since: 5 });
    const withRequests = { kind: "rules with requests", numbers: [2] };
    await pollUntil(() => told().some((message) => Bun.deepEquals(message, withRequests)), "the rules with requests");
    listener?.added([[3, "c"]]);
    listener?.removed([1]);
    await pollUntil(() => Bun.deepEquals(all(), { 2: "b", 3: "c" }), "the changed rules");
    // Not what they had counted before.
    await pollUntil(() => asked > 0, "the first counts");
    packets = 12;
    await pollUntil(() => counts().length > 0, "the counts");
    expect(counts()).toEqual([["tier default ingress default", 5]]);
    await say({ kind: "numbers in use", since: 7, numbers: [2] });
    await pollUntil(() => used.length > 0, "the numbers in use");
    expect(used).toEqual([[7, [2]]]);

    leave();
    flows.offerRules(
      rules([
        [2, "b"],
        [4, "d"],
      ]),
    );
    await pollUntil(() => Bun.deepEquals(all(), { 2: "b", 4: "d" }), "the rules of the next enforcement");
  });

  test("shows the collector's metrics and losses", async () => {
    await switchFlows({ flows: "Enabled" });
    start();
    await pollUntil(() => starts().length === 1, "the collector to start");
    expect(flows.metrics()).toContain("flow_collector_running 0\n");
    await say({ kind: "facts", losses: NO_LOSSES, metrics: "own_metric 1\n" });
    await pollUntil(() => flows.facts !== undefined, "the facts");

    for (const line of [
      "flow_collector_running 1\n",
      'flow_losses_total{reason="rule unknown"} 3\n',
      "flow_without_collector_seconds 0\n",
      "own_metric 1\n",
    ])
      expect(flows.metrics()).toContain(line);
  });

  test("starts a collector again that has ended, or that speaks nonsense", async () => {
    await switchFlows({ flows: "Enabled" });
    start();
    await pollUntil(() => starts().length === 1, "the first one");
    process.kill(Number(starts()[0]), "SIGKILL");
    await pollUntil(() => starts().length === 2, "the second one");
    expect(log.join("\n")).toContain("the collector of flows failed (SIGKILL)");
    await say({ kind: "nonsense" } as never);
    await pollUntil(() => starts().length === 4, "the third one");
    expect(log.join("\n")).toContain("which is not a message");
    expect(flows.metrics()).toContain("flow_collector_starts_total 3\n");
  });

  test("kills a collector that reads nothing, and keeps no messages for it", async () => {
    const all = Array.from({ length: 3_000 }, (_, index) => pod(`pod${index}`, `10.0.${index >> 8}.${index & 255}/32`));
    await put(ENDPOINT, ...all);
    await switchFlows({ flows: "Enabled" });
    speed = 10;
    start(READS_NOTHING);
    await pollUntil(() => starts().length === 2, "the next one");

    expect(log.join("\n")).toContain("it has read nothing for 30 s");
  });

  test("kills a collector that says nothing", async () => {
    await switchFlows({ flows: "Enabled" });
    await Bun.write(file(".silent"), "");
    speed = 10;
    start();
    await pollUntil(() => log.join("\n").includes("it has said nothing for 30 s"), "the reason", 20_000);
    await pollUntil(() => starts().length >= 2, "the next one", 20_000);
  }, 60_000);

  test("remembers nothing of what a collector was told", async () => {
    await switchFlows({ flows: "Enabled" });
    let listener: FlowRuleListener | undefined;
    flows.offerRules({
      ...{ settings: nodeAgentSettings([], "here"), labelsSince: 5, rules: () => [], rulesWithRequests: () => [] },
      ...{ noteUse: () => {}, denied: () => [] },
      follow(given) {
        listener = given;
        return () => {};
      },
    });
    speed = 3;
    start();
    const times = 300;
    const tell = async (first: number) => {
      const isTold = (number: number) =>
        told().some((each) => each.kind === "rules" && each.rules.some(([one]) => one === number));
      for (let number = first; number < first + times; number++) {
        listener?.added([[number, `rule ${number}`]]);
        await Bun.sleep(6);
      }
      await pollUntil(() => isTold(first + times - 1), "the last rule to be told");
      Bun.gc(true);
      return heapStats().objectTypeCounts;
    };
    await pollUntil(() => listener !== undefined && told().length > 0, "the collector to be told something");
    const before = await tell(1);
    const after = await tell(1 + times);

    const grown = (type: string) => (after[type] ?? 0) - (before[type] ?? 0);
    expect([grown("Promise"), grown("AbortSignal")].filter((count) => count > times / 3)).toEqual([]);
  }, 60_000);

  test("fails, to be started again, if a collector cannot be started at all", async () => {
    await switchFlows({ flows: "Enabled" });
    const replica = startReplica<NetworkValues>(store, networkKinds("here"), { signal: stop.signal });
    running = replica.ended;
    const [part] = partsOf(replica, () => {
      throw new StartRefused("no such program");
    });
    const failure: unknown = await part?.run(stop.signal).catch((reason: unknown) => reason);

    expect(String(failure)).toContain("no such program");
    // That one would end the whole agent.
    expect(failure).not.toBeInstanceOf(StartRefused);
    expect(flows.isOn).toBe(false);
  });
});
