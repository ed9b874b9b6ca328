/**
 * The packet table of network policy: real namespaces as pods, the real agent, the real kernel. Each row has its outcome
 * from a hand-written list, from the judge behind `policy explain`, and from a packet; all three must agree.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { NODE_AGENT_CONFIGURATION } from "../../src/model/kinds.ts";
import {
  type NodeAgentConfigurationSpec,
  nodeAgentConfiguration,
  nodeAgentSettings,
} from "../../src/model/node-agent-configuration.ts";
import { explain, type Verdict } from "../../src/policy/judge/explain.ts";
import { readPolicy } from "../../src/policy/read-resources.ts";
import { hasEtcd } from "../support/etcd.ts";
import { hostProblem } from "../support/host.ts";
import { program, testNeeding } from "../support/needs.ts";
import { proofSize } from "../support/proof-size.ts";
import { firstPacket, readRows, unreadable } from "./packet-rows.ts";
import { SCENARIOS, type Scenario } from "./packet-table.ts";
import { type End, type Labels, openPolicySite, type PolicySite, type Ports } from "./policy-site.ts";
import { outcomeOf, type Probe, serve } from "./probes.ts";

const PORTS = [80, 81, 82, 83];
const NAMESPACES = ["x", "y", "z"];
const web = (protocol: "TCP" | "UDP", port: number): Ports => [{ name: "web", protocol, port }];
const PODS: readonly (readonly [name: string, labels: Labels, ports?: Ports])[] = [
  ["x/a", { pod: "a" }, web("TCP", 80)],
  ["x/b", { pod: "b" }, web("TCP", 81)],
  ["x/c", { pod: "c" }, web("UDP", 82)],
  ["y/a", { pod: "a" }],
  ["y/b", { pod: "b" }],
  ["z/a", { pod: "a" }],
];

/**
 * On etcd every day a part: the rules that the agent writes do not depend on the datastore. With flows, too: each rule has the
 * same conditions, and what it does besides decides nothing. So with rejections.
 */
const partEach = (offset: number) =>
  proofSize({ everyDay: SCENARIOS.filter((_, index) => index % 5 === offset), soak: SCENARIOS });
const SITES = [
  { title: "on embedded", kind: "embedded", settings: {}, scenarios: SCENARIOS },
  { title: "on embedded, with flows", kind: "embedded", settings: { flows: "Enabled" }, scenarios: partEach(3) },
  {
    title: "on embedded, with rejections",
    kind: "embedded",
    settings: { denyAction: "Reject" },
    scenarios: partEach(2),
  },
  { title: "on etcd", kind: "etcd", settings: {}, scenarios: partEach(1) },
] as const;

function settingsRecord(settings: NodeAgentConfigurationSpec) {
  const metadata = { name: "default" };
  const value = nodeAgentConfiguration.write(nodeAgentConfiguration.make(metadata, settings));
  return { key: NODE_AGENT_CONFIGURATION.key(metadata), value };
}

describe.each(SITES)("the packet table, $title", ({ kind, settings, scenarios }) => {
  const needs = [
    ...[hostProblem(), program("nft"), program("ping")],
    kind === "etcd" && !hasEtcd ? "needs etcd" : undefined,
  ];
  const test = testNeeding(...needs);
  let policies: PolicySite;
  let servers: readonly Disposable[];
  beforeAll(async () => {
    if (needs.some((need) => need !== undefined)) return;
    policies = await openPolicySite({ kind });
    await policies.store.commit([{ kind: "put", ...settingsRecord(settings) }]);
    await Promise.all(NAMESPACES.map((name) => policies.labelNamespace(name, { ns: name })));
    for (const [name, labels, ports] of PODS) await policies.addPod(name, labels, ports);
    servers = (await Promise.all([...policies.ends.values()].map((end) => serve(end, PORTS)))).flat();
  });
  afterAll(async () => {
    for (const server of servers ?? []) server[Symbol.dispose]();
    await policies?.[Symbol.asyncDispose]();
  });

  for (const scenario of scenarios) {
    test(scenario.title, async () => {
      await prepare(scenario);
      const rows = readRows(scenario.rows, endOf);
      const judged = await judgeOf();
      const seen = await Promise.all(
        rows.map(async ({ probe, expected, text }) => {
          const outcome = await outcomeOf(probe, expected, policies.site.host);
          return { row: text, packet: outcome, judge: judged(probe) };
        }),
      );
      expect(seen).toEqual(rows.map(({ text, expected }) => ({ row: text, packet: expected, judge: expected })));
    });
  }

  async function prepare({ podLabels = {}, namespaceLabels = {}, policies: wanted }: Scenario): Promise<void> {
    for (const [name, labels] of PODS) await policies.labelPod(name, podLabels[name] ?? labels);
    for (const name of NAMESPACES) await policies.labelNamespace(name, namespaceLabels[name] ?? { ns: name });
    await policies.setPolicies(wanted);
    await policies.untilApplied();
    const { stdout } = await policies.site.host.run(["nft", "list", "table", "inet", identity.policyTable]);
    expect(stdout.includes("ct label set")).toBe("flows" in settings);
    expect(stdout.includes("goto rejected")).toBe("denyAction" in settings);
  }

  function endOf(name: string): End {
    return policies.ends.get(name) ?? unreadable(name);
  }

  /** What the judge says about a packet, with the resources in the datastore. */
  async function judgeOf(): Promise<(probe: Probe) => Verdict> {
    const { resources } = await readPolicy(policies.store);
    const endpointOf = (end: End) =>
      resources.endpoints.find(({ metadata, spec }) => `${metadata.namespace}/${spec.pod}` === end.name);
    const nodeOf = (end: End) => (end.name === "host" ? "node-1" : undefined);
    return (probe) => {
      const { from, to } = probe;
      const packet = firstPacket(probe);
      const endOf = (end: End) => ({ workload: endpointOf(end), node: nodeOf(end) });
      const settingsOf = (node: string) => nodeAgentSettings([], node);
      return explain({ packet, source: endOf(from), destination: endOf(to), settingsOf }, resources).verdict;
    };
  }
});
