import { describe, expect, test } from "bun:test";
import { identity } from "../../identity.ts";
import { matchProtocol, verdict } from "../../linux/nftables/match.ts";
import { interfaceValue } from "../../linux/nftables/value.ts";
import { FROM_WORKLOADS, workloadBaseChains } from "../render/base-chains.ts";
import { baseChain, byInterface } from "../render/chain-parts.ts";
import { mapName, stageChains } from "../render/host-chains.ts";
import type { DesiredChain, DesiredRule } from "./desired-table.ts";
import { verdictWithoutElement } from "./verdict-without-element.ts";

const MAP = mapName("input");
const ETH0 = interfaceValue("eth0");

function hostChain(otherInterfaces?: string): DesiredChain {
  const chains = stageChains("input", {
    failsafes: { inbound: [], outbound: [] },
    passesResets: false,
    tunnels: { kinds: new Set(), vxlanPort: 4789 },
    prefixes: [identity.interfacePrefix],
    otherInterfaces,
    used: new Set(["input"]),
  });
  return named(chains, "host_input");
}

function named(chains: readonly DesiredChain[], name: string): DesiredChain {
  const found = chains.find(({ chain }) => chain.name === name);
  if (found === undefined) throw new Error(`There is no chain "${name}"`);
  return found;
}

describe("verdictWithoutElement()", () => {
  test.each([
    ["goes to the chain of all other interfaces", "eth0", "others", { kind: "goto", chain: "others" }],
    ["accepts the loopback interface", "lo", "others", { kind: "accept" }],
    ["accepts an interface of a workload", `${identity.interfacePrefix}0`, "others", { kind: "accept" }],
    ["is the policy of the base chain if no rule follows", "eth0", undefined, { kind: "accept" }],
  ] as const)("of a host's chain %s", (_, interfaceName, otherInterfaces, expected) => {
    expect(verdictWithoutElement(hostChain(otherInterfaces), MAP, interfaceValue(interfaceName))).toEqual(expected);
  });

  test("the workloads' chain drops VXLAN at the port of this cluster and at the usual one", () => {
    const rulesWith = (vxlanPort: number) =>
      named(
        workloadBaseChains({
          defaultEndpointToHostAction: "Drop",
          prefixes: [],
          exempt: [],
          vxlanPort,
          hasIpvs: false,
          canReject: true,
          hasFlows: false,
        }),
        "from_workload",
      ).rules.filter(({ comment = "" }) => comment.includes("VXLAN"));

    expect([rulesWith(4789).length, rulesWith(8472).length]).toEqual([1, 2]);
  });

  test("of the workloads' chain drops", () => {
    const chain = named(
      workloadBaseChains({
        defaultEndpointToHostAction: "Drop",
        prefixes: [],
        exempt: [],
        vxlanPort: 4789,
        hasIpvs: false,
        canReject: true,
        hasFlows: false,
      }),
      "from_workload",
    );

    expect(verdictWithoutElement(chain, FROM_WORKLOADS, ETH0)).toEqual({ kind: "drop" });
  });

  test("is the same if the rule reports what it drops", () => {
    const drop: DesiredRule = {
      expressions: [{ kind: "counter" }, { kind: "log", prefix: "x", group: 7 }, verdict({ kind: "drop" })],
    };
    const chain = baseChain("x", { hook: "input", priority: 0 }, [byInterface("iifname", MAP), drop]);
    expect(verdictWithoutElement(chain, MAP, ETH0)).toEqual({ kind: "drop" });
  });

  test.each([
    ["depends on another field", [...matchProtocol(6), verdict({ kind: "drop" })]],
    ["continues after another chain", [verdict({ kind: "jump", chain: "others" })]],
  ] as const)("is unknown if it %s", (_, expressions) => {
    const rules: readonly DesiredRule[] = [byInterface("iifname", MAP), { expressions }];

    expect(verdictWithoutElement(baseChain("x", { hook: "input", priority: 0 }, rules), MAP, ETH0)).toBeUndefined();
  });

  test("is unknown if the chain does not look up the map", () => {
    expect(verdictWithoutElement(hostChain("others"), "another", ETH0)).toBeUndefined();
  });
});
