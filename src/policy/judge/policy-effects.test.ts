/** What is said to be open, the judge allows, whatever the packet; and the other way round where no packet can tell. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { globalPolicy } from "../../../test/support/global-policy.ts";
import { proofSize } from "../../../test/support/proof-size.ts";
import { histories, packets } from "../../../test/support/random-cluster.ts";
import { identity } from "../../identity.ts";
import { isSameAddress } from "../../ip/address.ts";
import { parseInterfaceAddress } from "../../ip/prefix.ts";
import { containerLabels } from "../../model/container-labels.ts";
import { globalNetworkSet } from "../../model/global-network-set.ts";
import { hostEndpoint } from "../../model/host-endpoint.ts";
import { profile } from "../../model/profile.ts";
import { tier } from "../../model/tier.ts";
import { workloadEndpoint } from "../../model/workload-endpoint.ts";
import { judge } from "./judge.ts";
import type { Packet } from "./packet.ts";
import { changedBeforeRouting, type PolicyEffect, policyEffects } from "./policy-effects.ts";
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

  test("no verdict of the judge changes without an effect on the endpoint", () => {
    fc.assert(
      fc.property(histories, fc.array(packets, { minLength: 20, maxLength: 20 }), (history, some) => {
        for (const [index, next] of history.entries()) {
          const before = history[index - 1];
          if (before === undefined) continue;
          // Commands do not change them.
          const after = { ...next, serviceEndpoints: before.serviceEndpoints ?? [] };
          const effects = policyEffects(before, after, "always");
          for (const endpoint of after.endpoints) {
            for (const direction of ["ingress", "egress"] as const) {
              if (effects.some((effect) => effect.endpoint === endpoint && effect.direction === direction)) continue;
              const at = { endpoint, direction };
              for (const packet of some.flatMap((each) => packetsOf(at, each))) {
                const former = verdictIn(before, at, packet);
                if (former !== "none") expect(verdictIn(after, at, packet)).toBe(former);
              }
            }
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

describe("policyEffects() of what rules select", () => {
  const none = { hostEndpoints: [], containerLabels: [], networkSets: [], globalNetworkSets: [], tiers: [] };
  const endpoint = (name: string, index: number, labels: Readonly<Record<string, string>>, spec: object = {}) =>
    workloadEndpoint.make(
      { name, namespace: "default", labels: { ...labels, [`${identity.labelPrefix}namespace`]: "default" } },
      {
        ...{ orchestrator: "cni", workload: name, node: "n", profiles: [] },
        ...{ ipNetworks: [`10.0.0.${index}/32`], ...spec },
      },
    );
  const web = endpoint("web", 1, {});
  const database = endpoint("database", 2, { role: "database" });
  const lasting = (container: string, labels: Readonly<Record<string, string>>) =>
    containerLabels.make({ name: `n.${container}` }, { node: "n", container, labels });
  const allow = (name: string, peer: object, more: object = {}) =>
    globalPolicy(name, {
      selector: "role == 'database'",
      types: ["Ingress"],
      ingress: [{ action: "Allow", source: peer, ...more }],
    });
  const state = (more: Partial<PolicyResources>): PolicyResources => ({
    ...{ ...none, endpoints: [web, database], profiles: [], networkPolicies: [], globalNetworkPolicies: [] },
    ...more,
  });
  const texts = (before: PolicyResources, after: PolicyResources) =>
    policyEffects(before, after).map(
      ({ endpoint: { metadata }, direction, kind }) => `${kind} ${direction} ${metadata.name}`,
    );

  test("labels of a peer, given and taken away, change whom the rule of another selects", () => {
    const before = state({ globalNetworkPolicies: [allow("databases", { selector: "role == 'web'" })] });
    const after = { ...before, containerLabels: [lasting("web", { role: "web" })] };

    expect(texts(before, after)).toEqual(["changes ingress database"]);
    expect(texts(after, before)).toEqual(["changes ingress database"]);
    expect(texts(before, { ...before, containerLabels: [lasting("web", { role: "mail" })] })).toEqual([]);
    expect(texts(before, { ...before, endpoints: [endpoint("web", 1, { role: "web" }), database] })).toEqual([
      "changes ingress database",
    ]);
    expect(texts(before, { ...before, containerLabels: [lasting("database", { tier: "x" })] })).toEqual([]);
  });

  test("what the endpoint itself begins to match as its own peer changes nothing", () => {
    const before = state({ globalNetworkPolicies: [allow("databases", { selector: "tier == 'x'" })] });

    expect(texts(before, { ...before, containerLabels: [lasting("database", { tier: "x" })] })).toEqual([]);
  });

  test("what another has as well, with the same address, was and is selected", () => {
    const same = endpoint("same", 1, { role: "web" });
    const before = state({
      endpoints: [web, same, database],
      globalNetworkPolicies: [allow("databases", { selector: "role == 'web'" })],
    });

    expect(texts(before, { ...before, containerLabels: [lasting("web", { role: "web" })] })).toEqual([]);
  });

  test.each(["notSelector", "selector"])("networks of a set change it by %s, the rest of the set does not", (field) => {
    const set = (nets: readonly string[], labels: Readonly<Record<string, string>>) =>
      globalNetworkSet.make({ name: "offices", labels }, { nets: [...nets] });
    const office = { set: "office" };
    const before = state({
      globalNetworkPolicies: [allow("databases", { [field]: "set == 'office'" })],
      globalNetworkSets: [set(["192.0.2.0/24"], office)],
    });
    const withSet = (...given: Parameters<typeof set>) =>
      texts(before, { ...before, globalNetworkSets: [set(...given)] });

    expect(withSet(["192.0.2.0/24", "198.51.100.1"], office)).toEqual(["changes ingress database"]);
    expect(withSet(["192.0.2.0/24"], {})).toEqual(["changes ingress database"]);
    expect(withSet(["192.0.2.0/24"], { ...office, more: "yes" })).toEqual([]);
    expect(texts(before, { ...before, globalNetworkSets: [] })).toEqual(["changes ingress database"]);
  });

  test("a named port changes it for whom declares it, and for peers of whom declares it", () => {
    const port = (number: number) => ({ ports: [{ name: "sql", protocol: "TCP", port: number }] });
    const role = { role: "database" };
    const other = endpoint("other", 3, role, port(1));
    const named = allow("databases", {}, { protocol: "TCP", destination: { ports: ["sql"] } });
    const out = globalPolicy("out", {
      selector: "!has(role)",
      types: ["Egress"],
      egress: [{ action: "Allow", protocol: "TCP", destination: { ports: ["sql"] } }],
    });
    const at = (number: number) =>
      state({
        endpoints: [web, endpoint("database", 2, role, port(number)), other],
        globalNetworkPolicies: [named, out],
      });
    const before = at(1);
    const kept = { ...at(2), globalNetworkPolicies: before.globalNetworkPolicies };

    expect(texts(before, { ...kept, endpoints: [web, ...kept.endpoints.slice(1, 2), other] })).toEqual([
      "changes egress web",
      "changes ingress database",
    ]);
  });

  test("labels that profiles give count, and rules of profiles", () => {
    const given = (labelsToApply: Readonly<Record<string, string>>) =>
      profile.make({ name: "given" }, { labelsToApply });
    const rules = profile.make({ name: "own" }, { ingress: [{ action: "Allow", source: { selector: "has(pods)" } }] });
    const endpoints = [
      endpoint("web", 1, {}, { profiles: ["given"] }),
      endpoint("database", 2, {}, { profiles: ["own"] }),
    ];
    const before = state({ endpoints, profiles: [given({}), rules], globalNetworkPolicies: [allow("x", {})] });

    expect(texts(before, { ...before, profiles: [given({ pods: "" }), rules] })).toEqual(["changes ingress database"]);
  });

  test("a label of a policy, and a policy that no packet gets to, change nothing", () => {
    const policy = allow("databases", { selector: "role == 'web'" });
    const before = state({ globalNetworkPolicies: [policy] });
    const labelled = { ...policy, metadata: { ...policy.metadata, labels: { a: "b" } } };
    const later = globalPolicy("z.later", {
      tier: "z",
      selector: "role == 'database'",
      types: ["Ingress"],
      ingress: [{ action: "Deny" }],
    });

    expect(texts(before, { ...before, globalNetworkPolicies: [labelled] })).toEqual([]);
    expect(texts(before, { ...before, globalNetworkPolicies: [policy, later] })).toEqual([]);
  });

  test("a tier that begins to pass packets changes it", () => {
    const first = tier.make({ name: "first" }, { order: 1, defaultAction: "Deny" });
    const policy = globalPolicy("first.x", { tier: "first", ingress: [{ action: "Deny", protocol: "TCP" }] });
    const before = state({ tiers: [first], globalNetworkPolicies: [policy] });
    const passing = tier.make({ name: "first" }, { order: 1, defaultAction: "Pass" });

    expect(texts(before, { ...before, tiers: [passing] })).toEqual(["changes ingress web", "changes ingress database"]);
  });

  test("each selector is evaluated for each changed workload, not for each workload and policy", () => {
    let looks = 0;
    const count = 200;
    const endpoints = Array.from({ length: count }, (_, index) => {
      const made = endpoint(`w${index}`, index, { role: index % 2 === 0 ? "database" : "web" });
      return Object.defineProperty({ ...made }, "metadata", {
        get() {
          looks += 1;
          return made.metadata;
        },
      });
    });
    const globalNetworkPolicies = Array.from({ length: count }, (_, index) =>
      allow(`p${index}`, { selector: `role == 'web' && c${index % 10} == 'yes'` }),
    );
    const before = state({ endpoints, globalNetworkPolicies });

    expect(texts(before, { ...before, containerLabels: [lasting("w1", { c1: "yes" })] })).toHaveLength(count / 2);
    expect(looks).toBeLessThan(40 * count);
  });
});

describe("changedBeforeRouting()", () => {
  test("names the hosts whose early policies select others, begin to select the host, or are others", () => {
    const host = (labels: Readonly<Record<string, string>>) =>
      hostEndpoint.make({ name: "h", labels }, { node: "n", interfaceName: "*" });
    const early = globalPolicy("early", {
      ...{ selector: "host == 'yes'", preDNAT: true, applyOnForward: true, types: ["Ingress"] },
      ingress: [{ action: "Deny", source: { selector: "set == 'bad'" } }],
    });
    const bad = globalNetworkSet.make({ name: "bad", labels: { set: "bad" } }, { nets: ["192.0.2.0/24"] });
    const before: PolicyResources = {
      ...{ endpoints: [], containerLabels: [], profiles: [], networkPolicies: [], networkSets: [], tiers: [] },
      ...{ hostEndpoints: [host({ host: "yes" })], globalNetworkPolicies: [early], globalNetworkSets: [] },
    };
    const names = (after: PolicyResources) => changedBeforeRouting(before, after).map(({ metadata }) => metadata.name);

    expect(names({ ...before, globalNetworkSets: [bad] })).toEqual(["h"]);
    expect(names({ ...before, hostEndpoints: [host({})] })).toEqual(["h"]);
    expect(names({ ...before, globalNetworkPolicies: [] })).toEqual(["h"]);
    expect(names({ ...before, hostEndpoints: [host({ host: "yes", more: "" })] })).toEqual([]);
  });
});

type At = Pick<PolicyEffect, "endpoint" | "direction">;

/** A packet as it can pass the workload: with its own address at one end, and that of another at the other. */
function packetsOf({ endpoint, direction }: At, packet: Packet): readonly Packet[] {
  const texts = "ipNetworks" in endpoint.spec ? (endpoint.spec.ipNetworks ?? []) : [];
  const own = texts.flatMap((text) => parseInterfaceAddress(text)?.address ?? []);
  const [side, other] =
    direction === "ingress" ? (["destination", "source"] as const) : (["source", "destination"] as const);
  return own
    .filter(({ family }) => family === packet[other].family)
    .filter(() => !own.some((address) => isSameAddress(address, packet[other])))
    .map((address) => ({ ...packet, [side]: address }));
}

function verdictIn(resources: PolicyResources, effect: At, packet: Packet): string {
  const { endpoint, direction } = effect;
  const own = resources.endpoints.find(
    ({ metadata }) => metadata.name === endpoint.metadata.name && metadata.namespace === endpoint.metadata.namespace,
  );
  return own === undefined ? "none" : judge(packet, own, direction, resources).verdict;
}
