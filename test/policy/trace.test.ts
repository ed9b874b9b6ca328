/** `policy trace` and `policy counters` on real packets: they name the rule that decides, also if it belongs to another program. */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { resourceKey } from "../../src/model/keys.ts";
import { nodeAgentConfiguration } from "../../src/model/node-agent-configuration.ts";
import { launchAgent } from "../agent/agent.ts";
import { fetchFromHost } from "../support/connectivity.ts";
import { hostProblem } from "../support/host.ts";
import { askTcpWithin, serveTcp } from "../support/namespace-sockets.ts";
import { program, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { builtProgram } from "../support/run-plugin.ts";
import { openPolicySite, type PodEnd, type PolicySite } from "./policy-site.ts";

const needs = [hostProblem(), program("nft"), program("iptables")];
const test = testNeeding(...needs);
const POLICY = { namespace: "shop", name: "db" };

interface Traced {
  readonly packet: string;
  readonly outcome: string;
  readonly decisions: readonly { readonly by: string; readonly owner: string }[];
}

describe("a node with a policy", () => {
  let policySite: PolicySite;
  let web: PodEnd;
  let db: PodEnd;
  let server: Disposable | undefined;

  const allow = (...ports: readonly number[]) =>
    policySite.setPolicies([
      {
        ...POLICY,
        spec: {
          selector: "app == 'db'",
          types: ["Ingress"],
          ingress: [
            ...ports.map((port) => ({ action: "Allow" as const, protocol: "TCP", destination: { ports: [port] } })),
            { action: "Deny" as const, protocol: "TCP", destination: { ports: [81] } },
          ],
        },
      },
    ]);
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
  });
});
