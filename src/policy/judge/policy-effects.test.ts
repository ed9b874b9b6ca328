/** What is said to be open, the judge allows, whatever the packet; and the other way round where no packet can tell. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { globalPolicy } from "../../../test/support/global-policy.ts";
import { proofSize } from "../../../test/support/proof-size.ts";
import { histories, packets } from "../../../test/support/random-cluster.ts";
import { profile } from "../../model/profile.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import { judge } from "./judge.ts";
import { type PolicyEffect, policyEffects } from "./policy-effects.ts";
import type { PolicyResources } from "./resources.ts";

const RUNS = proofSize({ everyDay: 60, soak: 5_000 });

describe("policyEffects()", () => {
  test("what it calls open before or after a change, the judge allows for every packet", () => {
    fc.assert(
      fc.property(histories, fc.array(packets, { minLength: 10, maxLength: 10 }), (history, some) => {
        for (const [index, after] of history.entries()) {
          const before = history[index - 1];
          if (before === undefined) continue;
          for (const effect of policyEffects(before, after)) {
            if (effect.endpoint.kind === "HostEndpoint" || effect.kind === "changes") continue;
            const open = effect.kind === "closes" ? before : after;
            const verdicts = some.map((packet) => verdictIn(open, effect, packet));
            expect(new Set(verdicts)).toEqual(new Set(["allow"]));
          }
        }
      }),
      { numRuns: RUNS },
    );
  });

  test("what it calls closed, some rule can deny: rules that only allow, and allow everything in the end, close nothing", () => {
    const some = fc.array(fc.constantFrom("TCP", "UDP", "SCTP"), { maxLength: 3 });
    fc.assert(
      fc.property(histories, some, ([first], protocols) => {
        if (first === undefined) return;
        const idle = globalPolicy("x", { selector: "!all()" });
        const open = { ...first, networkPolicies: [], globalNetworkPolicies: [idle] };
        const ingress = [...protocols.map((protocol) => ({ action: "Allow", protocol })), { action: "Allow" }];
        const policy = globalPolicy("y", { selector: "all()", types: ["Ingress"], ingress });

        const effects = policyEffects(open, { ...open, globalNetworkPolicies: [policy, idle] });

        expect(effects.filter(({ kind }) => kind !== "opens")).toEqual([]);
      }),
      { numRuns: RUNS },
    );
  });

  test("a change and its reverse have opposite effects on the same endpoints", () => {
    const opposite = { closes: "opens", opens: "closes", changes: "changes" } as const;
    const texts = (effects: readonly PolicyEffect[], kindOf: (kind: PolicyEffect["kind"]) => string) =>
      effects
        .map(
          ({ endpoint, direction, kind }) => `${kindOf(kind)} ${direction} ${endpoint.kind} ${endpoint.metadata.name}`,
        )
        .toSorted();
    fc.assert(
      fc.property(histories, (history) => {
        const [before, after] = history;
        if (before === undefined || after === undefined) return;
        expect(texts(policyEffects(after, before), (kind) => kind)).toEqual(
          texts(policyEffects(before, after), (kind) => opposite[kind]),
        );
      }),
      { numRuns: RUNS },
    );
  });

  test("a policy that denies everything closes whom it selects, one that is evaluated before routing closes no workload", () => {
    fc.assert(
      fc.property(histories, ([first]) => {
        if (first === undefined) return;
        const open = {
          ...first,
          networkPolicies: [],
          globalNetworkPolicies: [globalPolicy("x", { selector: "!all()" })],
        };
        const deny = { selector: "all()", types: ["Ingress"], ingress: [{ action: "Deny" }] };
        const closing = { ...open, globalNetworkPolicies: [globalPolicy("y", deny), ...open.globalNetworkPolicies] };
        const early = globalPolicy("y", { ...deny, preDNAT: true, applyOnForward: true });
        const before = policyEffects(open, { ...open, globalNetworkPolicies: [early, ...open.globalNetworkPolicies] });

        expect(before).toEqual([]);
        expect(
          policyEffects(open, closing).every(({ kind, direction }) => kind !== "opens" && direction === "ingress"),
        ).toBe(true);
      }),
      { numRuns: RUNS },
    );
  });
});

test("policyEffects() looks at each profile a few times, not once for each workload", () => {
  let looks = 0;
  const count = 200;
  const profiles = Array.from({ length: count }, (_, index) => {
    const made = profile.make({ name: `p${index}` }, { ingress: [{ action: "Allow" }], egress: [{ action: "Allow" }] });
    return Object.defineProperty({ ...made }, "metadata", {
      get() {
        looks += 1;
        return made.metadata;
      },
    });
  });
  const endpoints = Array.from({ length: count }, (_, index) =>
    workloadEndpoint.make({ name: `w${index}`, namespace: "default" }, { node: "n", profiles: [`p${index}`] }),
  );
  const none = {
    containerLabels: [],
    hostEndpoints: [],
    networkPolicies: [],
    networkSets: [],
    globalNetworkSets: [],
    tiers: [],
  };
  const before = { ...none, endpoints, profiles, globalNetworkPolicies: [] };
  const deny = globalPolicy("deny", { selector: "all()", types: ["Ingress"] });

  expect(policyEffects(before, { ...before, globalNetworkPolicies: [deny] })).toHaveLength(count);
  expect(looks).toBeLessThan(20 * count);
});

function verdictIn(resources: PolicyResources, effect: PolicyEffect, packet: Parameters<typeof judge>[0]): string {
  const { endpoint, direction } = effect;
  const own = resources.endpoints.find(
    ({ metadata }) => metadata.name === endpoint.metadata.name && metadata.namespace === endpoint.metadata.namespace,
  );
  return own === undefined ? "none" : judge(packet, own, direction, resources).verdict;
}
