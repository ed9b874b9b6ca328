import { describe, expect, test } from "bun:test";
import { changesBetween, NO_RESOURCES } from "../../../test/support/policy-changes.ts";
import { globalNetworkPolicy } from "../../model/global-network-policy.ts";
import { hostEndpoint } from "../../model/host-endpoint.ts";
import { type NodeAgentConfigurationSpec, nodeAgentConfiguration } from "../../model/node-agent-configuration.ts";
import { PolicyCompiler } from "../compile/compiler.ts";
import type { DesiredTable } from "../table/desired-table.ts";
import { REJECTED, REJECTED_CHAIN } from "./rejected.ts";

const policy = (name: string, spec: object) =>
  globalNetworkPolicy.make(
    { name },
    { tier: "default", doNotTrack: false, preDNAT: false, applyOnForward: true, types: ["Ingress"], ...spec },
  );
const ingress = [{ action: "Deny" as const }];
const RESOURCES = {
  ...NO_RESOURCES,
  hostEndpoints: [hostEndpoint.make({ name: "eth0" }, { node: "here", interfaceName: "eth0" })],
  globalNetworkPolicies: [
    policy("usual", { ingress }),
    policy("early", { preDNAT: true, ingress }),
    policy("raw", { doNotTrack: true, ingress }),
  ],
};

function compiled(spec: NodeAgentConfigurationSpec, rejectProblem?: string): PolicyCompiler {
  const compiler = new PolicyCompiler({ node: "here", dropGroup: 7, rejectProblem });
  const configuration = nodeAgentConfiguration.make(
    { name: "default" },
    { defaultEndpointToHostAction: "Drop", ...spec },
  );
  compiler.update(changesBetween(NO_RESOURCES, RESOURCES, configuration));
  return compiler;
}

/** Comments of rules, by what they do with a packet; families and directions are not told apart. */
function ends({ chains }: DesiredTable): Readonly<Record<"drop" | "reject", readonly string[]>> {
  const found = { drop: new Set<string>(), reject: new Set<string>() };
  for (const { chain, rules } of chains.values()) {
    for (const { expressions, comment = "no comment" } of chain.name === REJECTED ? [] : rules) {
      const last = expressions.at(-1);
      if (last?.kind !== "verdict") continue;
      if (last.verdict.kind === "drop") found.drop.add(comment);
      if (last.verdict.kind === "goto" && last.verdict.chain === REJECTED) found.reject.add(comment);
    }
  }
  return { drop: [...found.drop].sort(), reject: [...found.reject].sort() };
}

const GUARDS = [
  ...["IPIP of a workload", "VXLAN of a workload", "early ingress 0", "no comment", "raw ingress 0"],
  ...["unknown workload interface, egress", "unknown workload interface, ingress", "workload to host"],
];
const DENIALS = ["no profile allows it, egress", "no profile allows it, ingress"];

describe("denyAction", () => {
  test("Drop drops everything; rejections stay, for packets that are on their way to them when Reject becomes Drop", () => {
    for (const { table } of [compiled({}), compiled({ denyAction: "Drop" })]) {
      const { drop, reject } = ends(table);
      expect(drop).toEqual([...GUARDS, ...DENIALS, "tier default ingress default", "usual ingress 0"].sort());
      expect(reject).toEqual([]);
      expect(table.chains.get(REJECTED)).toEqual(REJECTED_CHAIN);
    }
  });

  test("Reject rejects what policies, tiers and profiles deny, after it was counted and reported; guards stay silent", () => {
    const { table } = compiled({ denyAction: "Reject" });
    const { drop, reject } = ends(table);
    expect(drop).toEqual([...GUARDS].sort());
    expect(reject).toEqual([...DENIALS, "tier default ingress default", "usual ingress 0"].sort());
    const denial = [...table.chains.values()]
      .flatMap(({ rules }) => rules)
      .find(({ comment }) => comment === "usual ingress 0");
    expect(denial?.expressions.map(({ kind }) => kind)).toEqual(["counter", "log", "verdict"]);
  });

  test("a switch changes only the chains with denials, to what a new compiler writes", () => {
    const compiler = compiled({});
    compiler.takeDelta();
    const next = nodeAgentConfiguration.make({ name: "node.here" }, { denyAction: "Reject" });
    compiler.update(changesBetween(NO_RESOURCES, NO_RESOURCES, next));
    const { chains, sets, elements } = compiler.takeDelta();
    expect([sets.size, elements.size, new Set(chains.values())]).toEqual([0, 0, new Set(["changed"] as const)]);
    expect([...chains.keys()].filter((name) => /^(host_|from_|to_|forward|input|no_)/.test(name))).toEqual([]);
    expect(compiler.table.chains).toEqual(compiled({ denyAction: "Reject" }).table.chains);
  });

  test("a kernel that cannot reject gets rules that drop, and the problem is told", () => {
    const { table, problems } = compiled({ denyAction: "Reject" }, "the kernel lacks it");
    expect([ends(table).reject, table.chains.has(REJECTED)]).toEqual([[], false]);
    expect(problems.map(({ title, reason }) => [title, reason])).toEqual([["denyAction", "the kernel lacks it"]]);
    expect(compiled({}, "the kernel lacks it").problems).toEqual([]);
  });
});
