/** The agent records flows of two containers with the real kernel, and root reads them over the socket of the node. */
import { afterAll, beforeAll, describe, expect, test as testAlways } from "bun:test";
import { join } from "node:path";
import { flowSocketPath } from "../../src/config/run-directory.ts";
import { SYSTEM_CLOCK } from "../../src/datastore/replica/clock.ts";
import type { FlowAnswer, FlowExplanation } from "../../src/flows/flow-answer.ts";
import type { FlowRecord } from "../../src/flows/flow-record.ts";
import { identity } from "../../src/identity.ts";
import { resourceKey } from "../../src/model/keys.ts";
import { NODE_AGENT_CONFIGURATION, STAGED_NETWORK_POLICY } from "../../src/model/kinds.ts";
import { type NodeAgentConfigurationSpec, nodeAgentConfiguration } from "../../src/model/node-agent-configuration.ts";
import { stagedNetworkPolicy } from "../../src/model/staged-network-policy.ts";
import { type Agent, startAgent } from "../agent/agent.ts";
import { type EnforcedPod, type EnforcedSite, openEnforcedSite } from "../policy/enforced-site.ts";
import { openConntrackTable } from "../support/conntrack-table.ts";
import { hostProblem } from "../support/host.ts";
import { askTcp, serveTcp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { openPluginSite, type PluginSite } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";
import { askFlows, untilCollecting } from "./flow-site.ts";

const [OPEN, CLOSED] = [8080, 8081];
/** The agent would kill it after five seconds. */
const LATE_MILLISECONDS = 3_000;
const NEEDS = [hostProblem(), program("nft"), program("curl")];

describe("the collector as a process", () => {
  const ends: readonly [string, (child: Collector) => unknown, number][] = [
    ["is told to end", (child) => child.kill("SIGTERM"), 0],
    ["cannot read a message", (child) => child.stdin.write("{}\n"), 1],
    ["has no agent any more", (child) => child.stdin.end(), 0],
  ];
  for (const [when, act, code] of ends) {
    testAlways(`ends at once when it ${when}`, async () => {
      await using child = spawnCollector();
      const { value } = await child.stdout.getReader().read();
      expect(new TextDecoder().decode(value)).toBe(`{"kind":"ready"}\n`);
      act(child);
      const late = new AbortController();
      const end = await Promise.race([child.exited, SYSTEM_CLOCK.wait(LATE_MILLISECONDS, late.signal)]);
      late.abort();

      expect(end).toBe(code);
    });
  }
});

type Collector = ReturnType<typeof spawnCollector>;

/** It listens to nothing before it has settings. */
function spawnCollector() {
  const main = join(import.meta.dir, "../../src/bin/main.ts");
  return Bun.spawn([process.execPath, main, identity.nodeAgent, "collect-flows"], {
    stdio: ["pipe", "pipe", "ignore"],
  });
}

describe("flows of an agent", () => {
  const test = testNeeding(...NEEDS);
  let enforced: EnforcedSite;
  let agent: Agent;
  let client: EnforcedPod;
  let server: EnforcedPod;
  const listeners: Disposable[] = [];

  beforeAll(async () => {
    if (NEEDS.some((need) => need !== undefined)) return;
    enforced = await openEnforcedSite("embedded");
    agent = await enforced.startAgent();
    [client, server] = [
      await enforced.attach(await enforced.makePod("shop", "client")),
      await enforced.attach(await enforced.makePod("shop", "server")),
    ];
    for (const port of [OPEN, CLOSED]) listeners.push(serveTcp(server.path, `port ${port}`, port));
    const ingress = [{ action: "Allow" as const, protocol: "TCP", destination: { ports: [OPEN] } }];
    await enforced.put("shop", "server", { types: ["Ingress"], ingress });
    await pollUntil(async () => (await reply(CLOSED)) === "silence" && (await reply(OPEN)) !== "silence", "the policy");
  });
  afterAll(async () => {
    for (const listener of listeners) listener[Symbol.dispose]();
    await enforced?.[Symbol.asyncDispose]();
  });

  const reply = (port: number) => askTcp(client.path, server.addresses[0] ?? "", port);
  const settings = async (spec: NodeAgentConfigurationSpec) => {
    const key = resourceKey("nodeagentconfigurations", { name: "default" });
    const value = nodeAgentConfiguration.write(nodeAgentConfiguration.make({ name: "default" }, spec));
    await enforced.site.store.put([{ kind: "put", key, value }]);
  };
  const ask = async (target: string): Promise<readonly FlowAnswer[]> => {
    const curl = ["curl", "-s", "--max-time", "10", "--unix-socket", flowSocketPath({}), `http://node${target}`];
    const { stdout } = await enforced.site.host.run(curl);
    return stdout
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as FlowAnswer);
  };
  const flows = async (port: number): Promise<readonly FlowRecord[]> =>
    (await ask(`/flows?port=${port}`)).flatMap((answer) => ("flow" in answer ? [answer.flow] : []));
  const collectors = async () => {
    const script = `for file in /proc/[0-9]*/cmdline; do tr "\\0" " " < $file | grep -q "^${identity.nodeAgent} collect-flows" && echo $file; done`;
    const { stdout } = await enforced.site.host.run(["sh", "-c", script]);
    return [...stdout.matchAll(/^\/proc\/(\d+)\/cmdline$/gm)].map(([, pid]) => Number(pid));
  };
  test("switched off, nothing of it runs", async () => {
    expect(await ask("/flows")).toEqual([]);
    expect((await enforced.table()).includes("ct label")).toBe(false);
  });

  test("switched on, an allowed connection has names, the rule that accepted it, and bytes", async () => {
    await settings({ flows: "Enabled", prometheusMetricsEnabled: true, prometheusMetricsHost: "127.0.0.1" });
    await pollUntil(async () => (await enforced.table()).includes("ct label"), "rules that write labels");
    await pollUntil(async () => (await ask("/flows")).length > 0, "the collector to answer");
    expect(await reply(OPEN)).toContain(`port ${OPEN}`);
    // Otherwise the kernel keeps a closed connection for two minutes.
    const kept = "/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_time_wait";
    await enforced.site.host.must(["sh", "-c", `echo 1 > ${kept}`]);
    await enforced.site.host.must(["sh", "-c", `echo 1 > ${kept.replace("time_wait", "close")}`]);
    const { length } = await flows(OPEN);
    expect(await reply(OPEN)).toContain(`port ${OPEN}`);
    await pollUntil(async () => (await flows(OPEN)).length > length, "the connection to be visible", 2_000);
    const found = async () => (await flows(OPEN)).filter(({ verdict }) => verdict === "allowed");
    await pollUntil(
      async () => (await found()).some(({ state, received }) => state === "ended" && received.bytes > 0),
      "its end",
      100_000,
    );
    const flow = (await found()).find(({ state }) => state === "ended");

    expect(flow).toMatchObject({
      ...{ protocol: 6, family: 4, direction: "both", verdict: "allowed" },
      source: { address: client.addresses[0], kind: expect.stringMatching(/^(pod|container)$/) },
      destination: { address: server.addresses[0], port: OPEN, kind: expect.stringMatching(/^(pod|container)$/) },
    });
    expect(flow?.decisions).toContainEqual({
      point: "workload ingress",
      verdict: "allow",
      rule: "shop/server ingress 0",
    });
    for (const count of [flow?.sent, flow?.received]) {
      expect(count?.packets).toBeGreaterThan(2);
      expect(count?.bytes).toBeGreaterThan(100);
    }
  });

  test("a denied connection names the end of the tier that denied it, and is explained", async () => {
    expect(await reply(CLOSED)).toBe("silence");
    const found = async () => (await flows(CLOSED)).filter(({ verdict }) => verdict === "denied");
    await pollUntil(async () => (await found()).length > 0, "the denied packets");
    const [flow] = await found();

    expect(flow).toMatchObject({ state: "denied", destination: { address: server.addresses[0], port: CLOSED } });
    expect(flow?.decisions.at(-1)).toEqual({
      ...{ point: "workload ingress", verdict: "deny", rule: "tier default ingress default" },
    });
    let explanation: FlowExplanation | undefined;
    await pollUntil(async () => {
      const [answer] = await ask(`/explanation?id=${encodeURIComponent(flow?.id ?? "")}`);
      explanation = answer !== undefined && "explanation" in answer ? answer.explanation : undefined;
      return explanation?.sides !== undefined;
    }, "the explanation");
    expect(explanation?.missing).toEqual([]);
    expect(explanation?.sides?.at(-1)).toMatchObject({ direction: "ingress", verdict: "denied" });
  });

  test("names are those of the moment, also of a pod that is gone and whose address has another one", async () => {
    const brief = await enforced.attach(await enforced.makePod("shop", "brief"));
    const [address = ""] = brief.addresses;
    const isReached = async ({ path }: EnforcedPod) =>
      (await askTcp(path, server.addresses[0] ?? "", OPEN)).includes(`port ${OPEN}`);
    await pollUntil(() => isReached(brief), "the agent to know the first pod");
    const names = async () => {
      const own = (await flows(OPEN)).filter(
        ({ source, verdict }) => source.address === address && verdict === "allowed",
      );
      return [...new Set(own.map(({ source }) => source.name))];
    };
    await pollUntil(async () => (await names()).length === 1, "the flow of the first pod");
    await enforced.site.quietly("DEL", brief);
    const next = await enforced.makePod("shop", "next");
    const later = await enforced.attach({ ...next, args: `${next.args};IP=${address}` });
    expect(later.addresses).toContain(address);
    await pollUntil(() => isReached(later), "the agent to know the next pod");
    await pollUntil(async () => (await names()).length === 2, "the flow of the next pod");
    expect(await names()).toEqual(["brief", "next"]);
  });

  test("a staged policy changes nothing, and flows say what it would decide", async () => {
    const rules = async () => (await enforced.table()).replaceAll(/packets \d+ bytes \d+/g, "");
    const before = await rules();
    const name = { namespace: "shop", name: "server" };
    const key = STAGED_NETWORK_POLICY.key(name);
    const ingress = [{ action: "Allow" as const, protocol: "TCP", destination: { ports: [CLOSED] } }];
    const staged = stagedNetworkPolicy.make(name, {
      stagedAction: "Set",
      tier: "default",
      types: ["Ingress"],
      ingress,
    });
    await enforced.site.store.put([{ kind: "put", key, value: stagedNetworkPolicy.write(staged) }]);
    const tried = async (port: number, wanted: string) => {
      const find = async () => (await flows(port)).find((flow) => flow.staged?.verdict === wanted);
      const isThere = async () => (await reply(port)) !== "" && (await find()) !== undefined;
      await pollUntil(isThere, `a flow to port ${port} that would be ${wanted}`, 60_000);
      return find();
    };
    const [denied, allowed] = [await tried(OPEN, "denied"), await tried(CLOSED, "allowed")];

    expect([denied?.verdict, allowed?.verdict]).toEqual(["allowed", "denied"]);
    expect(denied?.staged?.decisions.at(-1)).toEqual({
      ...{ point: "workload ingress", verdict: "deny", rule: "tier default ingress default" },
    });
    expect(allowed?.staged?.decisions.at(-1)).toEqual({
      ...{ point: "workload ingress", verdict: "allow", rule: "shop/server ingress 0" },
    });
    expect([await reply(OPEN), await reply(CLOSED)]).toEqual([expect.stringContaining(`port ${OPEN}`), "silence"]);
    expect(await rules()).toBe(before);
    const ofStaged = await ask("/flows?staged=denied");
    expect(ofStaged.flatMap((answer) => ("flow" in answer ? [answer.flow.destination.port] : []))).toContain(OPEN);
    await enforced.site.store.remove(key);
  });

  test("a collector that is killed is started again, and none is left after the agent", async () => {
    const [pid] = await collectors();
    expect(pid).toBeDefined();
    await enforced.site.host.must(["kill", "-KILL", String(pid)]);
    await pollUntil(async () => (await collectors()).some((other) => other !== pid), "another collector");
    await pollUntil(async () => (await flows(OPEN)).length > 0, "the history of the former one");
    await agent.signal("KILL");
    await agent.ended;
    await pollUntil(async () => (await collectors()).length === 0, "the collector to end with its agent");
    agent = await enforced.startAgent();
    await pollUntil(async () => (await flows(OPEN)).length > 0, "the collector of the next agent");
  });

  test("switched off again, the collector ends, and rules write no labels", async () => {
    const withoutCollector = async () =>
      (await ask("/flows?last=1")).flatMap((answer) => ("losses" in answer ? answer.losses.withoutCollector : []))[0];
    const before = await withoutCollector();
    await settings({ flows: "Disabled" });
    await pollUntil(async () => (await collectors()).length === 0, "the collector to end");
    await pollUntil(async () => !(await enforced.table()).includes("ct label"), "rules without labels");
    expect(await enforced.site.host.run(["test", "-e", flowSocketPath({})])).toMatchObject({ code: 1 });

    await settings({ flows: "Enabled" });
    await pollUntil(async () => (await withoutCollector()) !== undefined, "the next collector");
    // A time without an agent, but not this one.
    expect(await withoutCollector()).toBe(before);
    expect(agent.log()).not.toContain("[ERROR]");
  });
});

describe("a host whose network has no policies", () => {
  const test = testNeeding(...NEEDS);

  test("has its connections tracked as long as flows are on", async () => {
    await using site = await openPluginSite("embedded");
    const { name, cniVersion, ...plugin } = site.config();
    site.host.writeFile("/etc/cni/net.d/10-net.conflist", JSON.stringify({ name, cniVersion, plugins: [plugin] }));
    await startAgent(site.host);
    const [client, server] = [await site.makePod(), await site.makePod()];
    await site.add(client);
    const { ips } = await site.add(server);
    const [address = ""] = ips[0]?.address.split("/") ?? [];
    using _listening = serveTcp(site.host.view(server.netns), "server", OPEN);
    const connect = async () => await askTcp(site.host.view(client.netns), address, OPEN);
    const tables = async () => await site.host.must(["nft", "list", "tables"]);
    const configure = async (flows: "Enabled" | "Disabled") => {
      const value = nodeAgentConfiguration.write(nodeAgentConfiguration.make({ name: "default" }, { flows }));
      await site.store.put([{ kind: "put", key: NODE_AGENT_CONFIGURATION.key({ name: "default" }), value }]);
    };
    expect(await connect()).toContain("server");
    expect(trackedIn(site)).toBe(0);

    await configure("Enabled");
    await untilCollecting(site.host);
    await pollUntil(async () => (await connect()).includes("server") && trackedIn(site) > 0, "a tracked connection");
    const recorded = async () => (await askFlows(site.host)).flows;
    await pollUntil(async () => (await recorded()).length > 0, "a flow");
    expect((await recorded())[0]).toMatchObject({
      verdict: "allowed",
      decisions: [
        { point: "workload egress", verdict: "unknown", unknown: "not judged" },
        { point: "workload ingress", verdict: "unknown", unknown: "not judged" },
      ],
    });
    expect(await tables()).toContain(TRACKING_TABLE);
    await configure("Disabled");
    await pollUntil(async () => !(await tables()).includes(TRACKING_TABLE), "the table to be gone");
  });
});

const TRACKING_TABLE = `${identity.policyTable}_flows`;

function trackedIn({ host }: PluginSite): number {
  using table = openConntrackTable(host.netns);
  return table.list().length;
}
