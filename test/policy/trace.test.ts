/** `policy trace` and `policy counters` on real packets: they name the rule that decides, also if it belongs to another program. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { DROP_GROUP } from "../../src/firewall/policy-table.ts";
import { identity } from "../../src/identity.ts";
import { resourceKey } from "../../src/model/keys.ts";
import { nodeAgentConfiguration } from "../../src/model/node-agent-configuration.ts";
import { launchAgent } from "../agent/agent.ts";
import { fetchFromHost } from "../support/connectivity.ts";
import { hostProblem } from "../support/host.ts";
import { askTcpWithin, askUdpWithin, serveTcp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { openPolicySite, type PodEnd, type PolicySite, type WrittenPolicy } from "./policy-site.ts";

const needs = [hostProblem(), program("nft"), program("iptables")];
const test = testNeeding(...needs);
const POLICY = { namespace: "shop", name: "db" };

interface Traced {
  readonly packet: string;
  readonly outcome: string;
  readonly decisions: readonly { readonly by: string; readonly owner: string }[];
}

/** A line of `trace --dropped -o json`. */
interface Dropped extends Traced {
  readonly time: string;
  readonly destination: { readonly port?: number };
}

describe("a node with a policy", () => {
  let policySite: PolicySite;
  let web: PodEnd;
  let db: PodEnd;
  let server: Disposable | undefined;

  const allowing = (...ports: readonly number[]): WrittenPolicy => ({
    ...POLICY,
    spec: {
      selector: "app == 'db'",
      types: ["Ingress"],
      ingress: [
        ...ports.map((port) => ({ action: "Allow" as const, protocol: "TCP", destination: { ports: [port] } })),
        { action: "Deny" as const, protocol: "TCP", destination: { ports: [81] } },
      ],
    },
  });
  const allow = (...ports: readonly number[]) => policySite.setPolicies([allowing(...ports)]);
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    policySite = await openPolicySite();
    await policySite.labelNamespace("shop", {});
    web = await policySite.addPod("shop/web");
    db = await policySite.addPod("shop/db", { app: "db" });
    server = serveTcp(db.netns, "db", 80);
    await allow(80);
    await policySite.untilApplied();
  });
  afterAll(async () => {
    server?.[Symbol.dispose]();
    await policySite?.[Symbol.asyncDispose]();
  });

  const tool = (...words: readonly string[]) => policySite.site.host.run([builtProgram(identity.adminTool), ...words]);
  const traceTables = async () =>
    (await policySite.site.host.must(["nft", "list tables"])).split("\n").filter((line) => line.includes("_trace_"));
  const connect = (family: 4 | 6, port: number) =>
    askTcpWithin(300, web.netns, db.addresses[family === 4 ? 0 : 1], port);

  /** Connects until the tracer has seen some packets; it may begin in the middle of a connection. */
  const traceMany = async (family: 4 | 6, port: number, count: number): Promise<readonly Traced[]> => {
    const ends = ["--from", "shop/web", "--to", "shop/db", "--ip-version", String(family)];
    const flow = [...ends, "--port", String(port), "--count", String(count), "--timeout", "20", "-o", "json"];
    let isOver = false;
    const running = tool("policy", "trace", ...flow).finally(() => {
      isOver = true;
    });
    while (!isOver) await Promise.all([connect(family, port), Bun.sleep(20)]);
    const { code, stdout, stderr } = await running;
    if (code !== 0) throw new Error(`trace ended with ${code}: ${stdout}${stderr}`);
    return stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
  };
  const trace = async (family: 4 | 6, port: number) => (await traceMany(family, port, 1))[0];

  const namesRules = (family: 4 | 6) => async () => {
    const passed = await traceMany(family, 80, 8);
    expect(new Set(passed.map(({ outcome }) => outcome))).toEqual(new Set(["passed"]));
    expect(passed.map(({ decisions }) => decisions.map(({ by }) => by))).toContainEqual([
      "an egress rule of a profile",
      'NetworkPolicy "shop/db", ingress rule 1 (spec.ingress[0])',
    ]);
    const denied = await trace(family, 81);
    expect(denied).toMatchObject({
      outcome: "dropped",
      decisions: [{ owner: "policy", by: 'NetworkPolicy "shop/db", ingress rule 2 (spec.ingress[1])' }],
    });
    expect(denied?.packet).toMatch(/^TCP .*:81$/);
    expect((await trace(family, 82))?.decisions).toEqual([
      { owner: "policy", by: 'the end of tier "default": no ingress rule of its policies matches' },
    ]);
    expect(await traceTables()).toEqual([]);
  };
  test("trace names the rule of the policy that allows or denies an IPv4 packet", namesRules(4));
  test("trace names the rule of the policy that allows or denies an IPv6 packet", namesRules(6));

  test("trace names a chain of another program that drops first, by its rule or by its policy", async () => {
    const { host } = policySite.site;
    const chain = "{ type filter hook forward priority -10; tcp dport 80 counter drop; }";
    await host.must(["nft", `table inet site { chain first ${chain}; }`]);
    expect(await trace(4, 80)).toMatchObject({
      outcome: "dropped",
      table: "inet site",
      chain: "first",
      decisions: [{ owner: "other", see: "nft -a list chain inet site first" }],
    });
    const warned = await tool("node", "check");
    expect(warned.stdout).toContain('chain "first" of table inet "site"');
    await host.must(["nft", "delete table inet site"]);
    await host.must(["iptables", "-P", "FORWARD", "DROP"]);
    expect((await trace(4, 80))?.decisions[0]?.by).toContain('the policy of chain "FORWARD" of table ip "filter"');
    await host.must(["iptables", "-P", "FORWARD", "ACCEPT"]);
    expect((await trace(4, 80))?.outcome).toBe("passed");
  });

  test("a killed trace leaves nothing behind; without packets it says so", async () => {
    const { host } = policySite.site;
    const command = `${builtProgram(identity.adminTool)} policy trace --to ${db.addresses[0]} & echo $! > /run/trace.pid; wait`;
    const running = host.run(["sh", "-c", command]);
    await pollUntil(async () => (await traceTables()).length === 1, "the table of the tracer");
    await host.must(["sh", "-c", "kill -9 $(cat /run/trace.pid)"]);
    await running;
    await pollUntil(async () => (await traceTables()).length === 0, "the table to go");

    const { code, stderr } = await tool("policy", "trace", "--to", "192.0.2.99", "--timeout", "1");
    expect([code, stderr]).toEqual([1, expect.stringContaining("No packet was seen within 1 s")]);
    const asNobody = ["setpriv", "--reuid=65534", "--clear-groups", builtProgram(identity.adminTool)];
    const refused = await host.run([...asNobody, "policy", "trace", "--to", "192.0.2.99"]);
    expect(refused.stderr).toContain("Cannot trace packets: permission denied (run it as root)");
  });

  const isWatched = async () => {
    const { stdout } = await policySite.site.host.run(["cat", "/proc/net/netfilter/nfnetlink_log"]);
    return stdout.split("\n").some((line) => line.trim().startsWith(String(DROP_GROUP)));
  };
  const shell = (command: string) => policySite.site.host.run(["sh", "-c", command]);

  /** Follows what is dropped while the work is done, then ends as by Ctrl-C. */
  const watchDrops = async (
    words: string,
    work: (soFar: () => Promise<readonly Dropped[]>) => Promise<void>,
  ): Promise<{ readonly code: number; readonly stderr: string; readonly drops: readonly Dropped[] }> => {
    const command = `${builtProgram(identity.adminTool)} policy trace --dropped -o json ${words}`;
    const running = shell(`${command} > /run/drops 2> /run/drops.err & echo $! > /run/drops.pid; wait $!`);
    await pollUntil(isWatched, "the tool to listen");
    const read = async () =>
      (await shell("cat /run/drops")).stdout
        .trim()
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line));
    await work(read);
    await shell("kill -INT $(cat /run/drops.pid)");
    const { code } = await running;
    return { code, stderr: (await shell("cat /run/drops.err")).stdout, drops: await read() };
  };

  test("trace --dropped shows every packet that policy drops, with both names, and nothing that passes", async () => {
    const before = Date.now();
    const { code, stderr, drops } = await watchDrops("", async (soFar) => {
      await connect(4, 80);
      // Not an answer to anything: one datagram is enough.
      await askUdpWithin(10, web.netns, db.addresses[0], 5353);
      await pollUntil(async () => {
        await Promise.all([connect(4, 81), connect(6, 82)]);
        return new Set((await soFar()).map(({ destination }) => destination.port)).size === 3;
      }, "the packets");
    });
    expect([code, stderr]).toEqual([0, expect.not.stringContaining("error")]);
    const found = Map.groupBy(drops, ({ destination }) => destination.port);
    expect([...found.keys()].toSorted()).toEqual([5353, 81, 82]);
    expect(found.get(5353)).toHaveLength(1);
    const ends = {
      source: expect.objectContaining({ name: "shop/web" }),
      destination: expect.objectContaining({ name: "shop/db" }),
    };
    const end = [{ owner: "policy", by: 'the end of tier "default": no ingress rule of its policies matches' }];
    const rule = [{ owner: "policy", by: 'NetworkPolicy "shop/db", ingress rule 2 (spec.ingress[1])' }];
    expect(found.get(5353)?.[0]).toMatchObject({ ...ends, outcome: "dropped", protocol: "UDP", decisions: end });
    expect(found.get(81)?.[0]).toMatchObject({ ...ends, protocol: "TCP", decisions: rule });
    expect(found.get(82)?.[0]).toMatchObject({ ...ends, decisions: end });
    for (const { time } of drops) expect(Date.parse(time)).toBeWithin(before, Date.now() + 1);
    expect([await isWatched(), await traceTables()]).toEqual([false, []]);
  });

  test("trace --dropped is one at a time, leaves nothing when it is killed, and filters by port", async () => {
    await watchDrops("--port 82", async (soFar) => {
      const second = await tool("policy", "trace", "--dropped");
      expect([second.code, second.stderr]).toEqual([1, expect.stringContaining("another process does")]);
      await pollUntil(async () => {
        await Promise.all([connect(4, 81), connect(4, 82)]);
        return (await soFar()).length > 0;
      }, "a packet to port 82");
      expect(new Set((await soFar()).map(({ destination }) => destination.port))).toEqual(new Set([82]));
      await shell("kill -9 $(cat /run/drops.pid)");
      await pollUntil(async () => !(await isWatched()), "the listener to go");
    });
  });

  const flood = (milliseconds: number, port: number) => {
    const sender = [process.execPath, `${import.meta.dir}/flood-sender.process.ts`, db.addresses[0]];
    return Bun.spawn(["nsenter", `--net=${web.netns}`, ...sender, String(milliseconds), String(port)], {
      stdout: "ignore",
    }).exited;
  };

  test("a flood of dropped packets does not flood trace --dropped", async () => {
    const { drops, stderr } = await watchDrops("", async () => {
      await flood(1_500, 5_354);
    });
    expect(drops.length).toBeGreaterThan(50);
    expect(drops.length).toBeLessThanOrEqual(400);
    expect(stderr).toContain("there are more packets than can be shown");
  });

  test("Log is limited in the kernel, and counted; counters name the containers", async () => {
    const spec: WrittenPolicy["spec"] = {
      ...{ selector: "app == 'db'", types: ["Ingress"], ingress: [{ action: "Log", protocol: "UDP" }] },
    };
    await policySite.setPolicies([allowing(80), { namespace: "shop", name: "logged", spec }]);
    await policySite.untilApplied();
    const rules = await policySite.site.host.must(["nft", "list", "table", "inet", identity.policyTable]);
    expect(rules).toMatch(
      /counter packets 0 bytes 0 limit rate 10\/second burst 50 packets log prefix "\w+ shop\/logged ingress rule 1: "/,
    );
    await flood(300, 5_355);
    const { stdout } = await tool("policy", "counters", "-o", "json");
    const rows: readonly {
      policy?: string;
      decidedBy: string;
      action: string;
      packets: number;
      endpoints: readonly string[];
    }[] = JSON.parse(stdout).rules;
    const [logged] = rows.filter(({ action }) => action === "Log");
    expect(logged).toMatchObject({ policy: "shop/logged", rule: 0, endpoints: ["shop/db"] });
    expect(logged?.packets).toBeGreaterThan(60);
    // After Log the packets go on to the end of the tier.
    const ends = rows.filter(({ decidedBy, packets }) => decidedBy.startsWith("the end of tier") && packets > 0);
    expect(ends).toMatchObject([{ action: "Deny", endpoints: ["shop/db"] }]);
    expect(ends[0]?.packets).toBeGreaterThanOrEqual(logged?.packets ?? 0);
    expect(rows.filter(({ policy, packets }) => policy === undefined && packets === 0)).toEqual([]);
    await allow(80);
    await policySite.untilApplied();
  });

  test("counters continue when the agent writes a rule again, and its metrics never fall", async () => {
    const { host, store } = policySite.site;
    const key = resourceKey("nodeagentconfigurations", { name: "default" });
    const spec = { prometheusMetricsEnabled: true, prometheusMetricsHost: "127.0.0.1" };
    const value = nodeAgentConfiguration.write(nodeAgentConfiguration.make({ name: "default" }, spec));
    await store.put([{ kind: "put", key, value }]);
    const counters = async () => {
      const { stdout } = await tool("policy", "counters", "shop/db", "-o", "json");
      const rules: readonly { action: string; rule: number; packets: number }[] = JSON.parse(stdout).rules;
      return rules.map(({ action, rule, packets }) => ({ action, rule, packets }));
    };
    const metric = async (action: string) => {
      const text = await fetchFromHost(host, "127.0.0.1", 9091, "/metrics");
      const line = new RegExp(
        `policy_packets_total\\{policy="shop/db",direction="ingress",action="${action}"\\} (\\d+)`,
      );
      return Number(line.exec(text)?.[1]);
    };
    for (const port of [80, 80, 81, 81, 81, 81]) await connect(4, port);
    const before = await counters();
    expect(before.map(({ action, rule }) => [action, rule])).toEqual([
      ["Allow", 0],
      ["Deny", 1],
    ]);
    const [allowed = 0, denied = 0] = before.map(({ packets }) => packets);
    expect(allowed).toBeGreaterThanOrEqual(2);
    expect(denied).toBeGreaterThanOrEqual(1);
    // Clients that were denied earlier send again now and then.
    const metrics = [await metric("allow"), await metric("deny")];
    expect(metrics[0]).toBe(allowed);
    expect(metrics[1]).toBeGreaterThanOrEqual(denied);

    // The rule about port 90 takes the place of the one that denied.
    await allow(80, 90);
    await policySite.untilApplied();
    const after = await counters();
    expect(after.map(({ action, rule }) => `${action} ${rule}`)).toEqual(["Allow 0", "Allow 1", "Deny 2"]);
    expect(after.slice(0, 2).map(({ packets }) => packets)).toEqual([allowed, 0]);
    expect(after[2]?.packets).toBeLessThan(denied);
    expect(await metric("allow")).toBe(allowed);
    expect(await metric("deny")).toBeGreaterThanOrEqual(metrics[1] ?? 0);

    await policySite.agent.signal("TERM");
    await policySite.agent.ended;
    const next = launchAgent(host);
    await policySite.untilApplied();
    expect((await counters())[0]?.packets).toBe(allowed);
    await next.signal("TERM");
    expect(await next.ended).toBe(0);

    // As an agent of an earlier release leaves it: no rule reports what it drops.
    await host.must(["nft", `flush chain inet ${identity.policyTable} to_workload`]);
    const refused = await tool("policy", "trace", "--dropped");
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("do not report them")]);
  });
});
