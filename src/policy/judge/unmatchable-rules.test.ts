import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { proofSize } from "../../../test/support/proof-size.ts";
import { clusters, packets } from "../../../test/support/random-cluster.ts";
import { networkPolicy } from "../../model/network-policy.ts";
import type { PolicyRule } from "../../model/policy-rule.ts";
import type { Direction } from "../effective-rule.ts";
import { judge } from "./judge.ts";
import type { AnyPolicy, PolicyResources } from "./resources.ts";
import { unmatchableRules } from "./unmatchable-rules.ts";

const RUNS = proofSize({ everyDay: 60, soak: 20_000 });
const some = fc.array(packets, { minLength: 20, maxLength: 20 });

function key({ metadata }: AnyPolicy, direction: Direction, rule: number): string {
  return `${metadata.namespace}/${metadata.name} ${direction} ${rule}`;
}

/** Each policy twice, and some rules with others behind them: otherwise hardly a rule is behind one that covers it. */
function withMore(resources: PolicyResources): PolicyResources {
  const networkPolicies = resources.networkPolicies.flatMap((policy) => {
    const { spec, metadata } = policy;
    const all = (rules: readonly PolicyRule[] = []) => [
      ...rules,
      ...rules.map((rule) => ({ ...rule, ipVersion: 4 as const })),
    ];
    const more = { ...spec, ingress: all(spec.ingress), egress: all(spec.egress) };
    return [
      networkPolicy.make(metadata, more),
      networkPolicy.make({ ...metadata, name: `${metadata.name}b` }, { ...spec, types: spec.types ?? ["Ingress"] }),
    ];
  });
  return { ...resources, networkPolicies };
}

describe("unmatchableRules()", () => {
  test("never names a rule that decides about a packet", () => {
    let [named, decided] = [0, 0];
    fc.assert(
      fc.property(clusters, some, (all, sent) => {
        const resources = withMore(all);
        const { networkPolicies, globalNetworkPolicies } = resources;
        const found = unmatchableRules([...networkPolicies, ...globalNetworkPolicies]);
        const unmatchable = new Set(found.map(({ policy, direction, rule }) => key(policy, direction, rule)));
        named += unmatchable.size;
        for (const packet of sent) {
          for (const endpoint of resources.endpoints) {
            for (const direction of ["ingress", "egress"] as const) {
              const { reason, passes } = judge(packet, endpoint, direction, resources);
              for (const each of [reason, ...passes]) {
                if (each.kind !== "rule" || !isWritten(each.policy, resources)) continue;
                decided += 1;
                expect(unmatchable.has(key(each.policy, direction, each.index))).toBe(false);
              }
            }
          }
        }
      }),
      { numRuns: RUNS },
    );
    expect(Math.min(named, decided)).toBeGreaterThan(100);
  });

  const TCP = { action: "Allow", protocol: "TCP" } as const;
  const cases: readonly (readonly [string, readonly PolicyRule[], string | undefined])[] = [
    [
      "wider nets before",
      [
        { ...TCP, source: { nets: ["10.0.0.0/8"] } },
        { ...TCP, source: { nets: ["10.1.0.0/16"] } },
      ],
      "earlier rule",
    ],
    [
      "wider nets behind",
      [
        { ...TCP, source: { nets: ["10.1.0.0/16"] } },
        { ...TCP, source: { nets: ["10.0.0.0/8"] } },
      ],
      undefined,
    ],
    [
      "a range of ports before",
      [
        { ...TCP, destination: { ports: ["1:99"] } },
        { ...TCP, destination: { ports: [80] } },
      ],
      "earlier rule",
    ],
    [
      "a named port before",
      [
        { ...TCP, destination: { ports: ["http"] } },
        { ...TCP, destination: { ports: [80] } },
      ],
      undefined,
    ],
    ["everything before", [{ action: "Deny" }, { ...TCP, source: { selector: "app == 'a'" } }], "earlier rule"],
    ["a rule that logs before", [{ action: "Log" }, TCP], undefined],
    ["another protocol before", [{ ...TCP, protocol: "UDP" }, TCP], undefined],
    ["its own exception", [{ ...TCP, source: { nets: ["10.1.0.0/16"], notNets: ["10.0.0.0/8"] } }], "contradiction"],
    [
      "ends of two families",
      [{ ...TCP, source: { nets: ["10.0.0.0/8"] }, destination: { nets: ["fd00::/8"] } }],
      "contradiction",
    ],
  ];
  test.each(cases)("a rule with %s", (_, ingress, kind) => {
    const policy = networkPolicy.make({ name: "a", namespace: "b" }, { tier: "default", ingress: [...ingress] });

    expect(unmatchableRules([policy]).map(({ reason }) => reason.kind)).toEqual(
      kind === undefined ? [] : ([kind] as never),
    );
  });

  test("a rule of a direction that the policy does not have", () => {
    const policy = networkPolicy.make(
      { name: "a", namespace: "b" },
      { tier: "default", types: ["Ingress"], egress: [TCP] },
    );

    expect(unmatchableRules([policy])).toMatchObject([{ direction: "egress", rule: 0, reason: { kind: "direction" } }]);
  });
});

/** What cannot be carried out is judged by other rules than those that are written. */
function isWritten(policy: AnyPolicy, { networkPolicies, globalNetworkPolicies }: PolicyResources): boolean {
  return [...networkPolicies, ...globalNetworkPolicies].includes(policy);
}
