import { describe, expect, spyOn, test } from "bun:test";
import { changesBetween, NO_RESOURCES } from "../../test/support/policy-changes.ts";
import { identity } from "../identity.ts";
import { parseAddress } from "../ip/address.ts";
import { globalNetworkPolicy } from "../model/global-network-policy.ts";
import { NETWORK_POLICY } from "../model/kinds.ts";
import { type NetworkPolicy, networkPolicy } from "../model/network-policy.ts";
import { networkSet } from "../model/network-set.ts";
import { nodeAgentSettings } from "../model/node-agent-configuration.ts";
import type { PolicyRule } from "../model/policy-rule.ts";
import { profile } from "../model/profile.ts";
import { tier } from "../model/tier.ts";
import { type WorkloadEndpoint, workloadEndpoint } from "../model/workload-endpoint.ts";
import { PolicyCompiler } from "./compile/compiler.ts";
import { NamespaceLimits } from "./compile/namespace-limits.ts";
import type { PolicyRecord } from "./compile/policy-record.ts";
import { problemOf } from "./judge/enforced-policy.ts";
import { explain } from "./judge/explain.ts";
import type { PolicyResources } from "./judge/resources.ts";
import { limitsOfOne, type PolicySize, policyLimits, problemsOfSizes, sizeOfPolicy } from "./policy-size.ts";

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index);
const spec = (...ingress: readonly PolicyRule[]) => ({
  tier: "default",
  types: ["Ingress" as const],
  ingress: [...ingress],
});
const from = (source: NonNullable<PolicyRule["source"]>): PolicyRule => ({ action: "Allow", source });
const toPorts = (ports: (number | string)[]): PolicyRule => ({
  action: "Allow",
  protocol: "TCP",
  destination: { ports },
});

const LARGEST_NAMESPACE = policyLimits(nodeAgentSettings([], ""));
const LARGEST_POLICY = limitsOfOne(LARGEST_NAMESPACE);

describe("sizeOfPolicy()", () => {
  interface Counted {
    readonly lists: number;
    readonly rules: number;
  }
  const SIZES: readonly (readonly [string, readonly PolicyRule[], Counted])[] = [
    ["no rules", [], { lists: 0, rules: 0 }],
    ["everybody", [{ action: "Allow" }], { lists: 0, rules: 1 }],
    ["the same selector twice", [from({ selector: "has(a)" }), from({ selector: "has(a)" })], { lists: 1, rules: 8 }],
    [
      "selectors that differ in the namespace",
      [from({ selector: "has(a)" }), from({ selector: "has(a)", namespaceSelector: "has(b)" })],
      { lists: 2, rules: 8 },
    ],
    ["what is not selected", [from({ notSelector: "has(a)" })], { lists: 2, rules: 4 }],
    ["a service", [from({ services: { name: "a" } })], { lists: 1, rules: 2 }],
    ["a few ports", [toPorts([1, 2, 3])], { lists: 0, rules: 3 }],
    ["many ports", [toPorts(upTo(20))], { lists: 1, rules: 1 }],
    ["named ports", [toPorts(["web"]), toPorts(["web"]), toPorts(["dns"])], { lists: 2, rules: 6 }],
    ["an IPv4 network", [from({ nets: ["10.0.0.0/8"] })], { lists: 0, rules: 1 }],
    ["networks of both families", [from({ nets: ["10.0.0.0/8", "fd00::/8", "fe80::/10"] })], { lists: 0, rules: 3 }],
    ["many networks", [from({ nets: upTo(20).map((each) => `10.${each}.0.0/16`) })], { lists: 1, rules: 1 }],
    ["exceptions of a network", [from({ nets: ["10.0.0.0/8"], notNets: ["10.1.0.0/16"] })], { lists: 0, rules: 1 }],
    ["named and other ports", [toPorts([1, 2, "web", "dns"])], { lists: 1, rules: 6 }],
    ["one family", [{ ...from({ selector: "has(a)" }), ipVersion: 4 }], { lists: 1, rules: 2 }],
    [
      "lists that combine",
      [{ ...toPorts(upTo(8)), source: { nets: upTo(8).map((each) => `10.${each}.0.0/16`), selector: "has(a)" } }],
      { lists: 3, rules: 2 },
    ],
  ];
  for (const [title, rules, size] of SIZES) {
    test(title, () => {
      const found = sizeOfPolicy(spec(...rules));
      expect({ lists: found.lists.size, rules: found.rules }).toEqual(size);
    });
  }

  test("is never less than the rules of the kernel", () => {
    const set = networkSet.make({ name: "n", namespace: "red", labels: { a: "x" } }, { nets: ["192.0.2.0/24"] });
    const endpoint = workloadEndpoint.make(
      { name: "here-k8s-a-eth0", namespace: "red", labels: { [`${identity.labelPrefix}namespace`]: "red" } },
      { node: "here", interfaceName: "vend0", ipNetworks: ["10.0.0.1/32"] },
    );
    for (const [title, rules] of SIZES) {
      const policy = networkPolicy.make({ name: "a", namespace: "red" }, spec(...rules));
      const compiler = new PolicyCompiler({ node: "here", hasServices: true });
      const cluster = { ...NO_RESOURCES, endpoints: [endpoint], networkSets: [set], networkPolicies: [policy] };
      compiler.update(changesBetween(NO_RESOURCES, cluster));
      const rendered = [...compiler.table.chains.values()]
        .flatMap((chain) => chain.rules)
        .filter(({ comment }) => comment?.startsWith("red/a ingress"));
      expect([title, rendered.length <= sizeOfPolicy(policy.spec).rules]).toEqual([title, true]);
    }
  });
});

describe("problemsOfSizes()", () => {
  const sized = (name: string, { lists = 0, rules = 0 }): PolicySize => ({
    lists: new Set(upTo(lists).map((each) => `${name}-${each}`)),
    rules,
  });
  const LIMITS = { lists: 40, rules: 400 };
  const beyond = (sizes: Readonly<Record<string, PolicySize>>) => [
    ...problemsOfSizes(new Map(Object.entries(sizes)), LIMITS).keys(),
  ];
  const of = (sizes: Readonly<Record<string, { readonly lists?: number; readonly rules?: number }>>) =>
    beyond(Object.fromEntries(Object.entries(sizes).map(([name, size]) => [name, sized(name, size)])));
  const [A, B, C] = [{ lists: 10 }, { lists: 10 }, { lists: 10 }];

  test("are none up to the limits", () => {
    expect(of({ a: A, b: B, c: C, d: { lists: 9, rules: 100 }, e: { lists: 1 } })).toEqual([]);
  });

  test("are of those beyond the limit of a policy, and these do not count for others", () => {
    expect(of({ a: { lists: 11 }, b: { rules: 101 }, c: A, d: A, e: A, f: A })).toEqual(["b", "a"]);
  });

  test("are of the largest, in whichever order they come", () => {
    expect(of({ large: { lists: 10 }, a: A, b: B, c: C, small: { lists: 1 } })).toEqual(["large"]);
    expect(of({ small: { lists: 1 }, c: C, b: B, a: A, large: { lists: 10 } })).toEqual(["large"]);
    expect(of({ e: { rules: 100 }, a: { rules: 99 }, b: { rules: 99 }, c: { rules: 99 }, d: { rules: 99 } })).toEqual([
      "e",
    ]);
  });

  test("count a list that many policies have once", () => {
    const shared = { lists: new Set(upTo(10).map(String)), rules: 1 };
    expect(beyond(Object.fromEntries(upTo(300).map((each) => [`p${each}`, shared])))).toEqual([]);
  });
});

describe("ordinary policies are within the limits", () => {
  const isWithin = (...specs: readonly ReturnType<typeof spec>[]) =>
    problemsOfSizes(new Map(specs.map((each, index) => [`${index}`, sizeOfPolicy(each)])), LARGEST_NAMESPACE).size ===
    0;
  const networks = (count: number) => upTo(count).map((each) => `10.${each >> 8}.${each & 255}.0/24`);

  test("300 services, each with a selector of its own and six that all have", () => {
    const common = upTo(6).map((each) => from({ selector: `common == '${each}'` }));
    expect(isWithin(...upTo(300).map((each) => spec(...common, from({ selector: `app == '${each}'` }))))).toBe(true);
  });

  test("5,100 networks with one port, and 1,700 with three", () => {
    expect(isWithin(spec(...networks(5_100).map((net) => ({ ...toPorts([443]), source: { nets: [net] } }))))).toBe(
      true,
    );
    expect(isWithin(spec(...networks(1_700).map((net) => ({ ...toPorts([1, 3, 5]), source: { nets: [net] } }))))).toBe(
      true,
    );
  });
});

describe("NamespaceLimits", () => {
  /** Counts how often the size of any of them is read. */
  function counted(count: number, lists: (index: number) => readonly string[]) {
    const reads = { count: 0 };
    const records = upTo(count).map((index): PolicyRecord => {
      const size = { lists: new Set(lists(index)), rules: 1 };
      return {
        ...{ key: `p${index}`, title: `red/p${index}`, selector: "" as PolicyRecord["selector"], tier: "default" },
        ...{ order: 1, stage: "normal", appliesOnForward: false, rules: {} },
        get size() {
          reads.count++;
          return {
            rules: size.rules,
            get lists() {
              reads.count++;
              return size.lists;
            },
          };
        },
      };
    });
    return { records, reads };
  }

  test("a change within the limit costs the same however many policies there are", () => {
    const costs = [100, 4_000].map((count) => {
      const { records, reads } = counted(count, (index) => [`${index % 4_000}`]);
      const limits = new NamespaceLimits(LARGEST_NAMESPACE);
      for (const record of records) {
        limits.note("red", record.key, record);
        limits.settle();
      }
      return reads.count / count;
    });
    expect(costs[1]).toBe(costs[0] ?? 0);
  });

  test("one update of the compiler settles once, however many policies it has", () => {
    const networkPolicies = upTo(100).map((each) =>
      networkPolicy.make({ name: `p${each}`, namespace: each % 2 === 0 ? "red" : "blue" }, spec()),
    );
    const compiler = new PolicyCompiler({ node: "here" });
    using settle = spyOn(NamespaceLimits.prototype, "settle");
    compiler.update(changesBetween(NO_RESOURCES, { ...NO_RESOURCES, networkPolicies }));

    expect([settle.mock.calls.length, compiler.policyCount]).toEqual([1, 100]);
  });

  test("many changes beyond the limit are looked at once, together", () => {
    const costs = [5_000, 10_000].map((count) => {
      const { records, reads } = counted(count, (index) => [`${index}`]);
      const limits = new NamespaceLimits({ lists: 40, rules: 40_000 });
      for (const record of records) limits.note("red", record.key, record);
      const settled = limits.settle();
      expect(settled.filter(([, record]) => record?.problem === undefined).length).toBe(40);
      return reads.count / count;
    });
    // Sorting takes a little more for each.
    expect((costs[1] ?? 0) / (costs[0] ?? 1)).toBeLessThan(1.5);
  });

  test("other limits close and open what is there", () => {
    const { records } = counted(12, (index) => [`${index}`]);
    const limits = new NamespaceLimits({ lists: 12, rules: 100 });
    for (const record of records) limits.note("red", record.key, record);
    const closed = () => limits.settle().map(([key, record]) => [key, record?.problem !== undefined]);
    expect(closed().filter(([, isClosed]) => isClosed)).toEqual([]);
    limits.setLimits({ lists: 11, rules: 100 });
    expect(closed()).toEqual([["p9", true]]);
    limits.setLimits({ lists: 12, rules: 100 });
    expect(closed()).toEqual([["p9", false]]);
    limits.setLimits({ lists: 12, rules: 100 });
    expect(closed()).toEqual([]);
  });
});

describe("a policy beyond the limits", () => {
  const selecting = (name: string, count: number, namespace = "red"): NetworkPolicy => {
    const rules = upTo(count).map((each) => from({ selector: `app == '${name}-${each}'` }));
    return networkPolicy.make({ name, namespace }, spec(...rules));
  };
  const endpoint = workloadEndpoint.make(
    { name: "here-k8s-a-eth0", namespace: "red", labels: { [`${identity.labelPrefix}namespace`]: "red" } },
    { node: "here", interfaceName: "vend0", ipNetworks: ["10.0.0.1/32"] },
  );
  const cluster = (...networkPolicies: readonly NetworkPolicy[]) => ({
    ...NO_RESOURCES,
    endpoints: [endpoint],
    networkPolicies,
  });
  const compiled = (...policies: readonly NetworkPolicy[]) => {
    const compiler = new PolicyCompiler({ node: "here" });
    compiler.update(changesBetween(NO_RESOURCES, cluster(...policies)));
    return compiler;
  };
  const KEY = NETWORK_POLICY.key({ namespace: "red", name: "a" });
  const closed = ({ problems }: PolicyCompiler) => problems.map(({ title }) => title);

  test("denies everything, has no set in the kernel, and is reported", () => {
    const [allowed, tooLarge] = [selecting("a", LARGEST_POLICY.lists), selecting("a", LARGEST_POLICY.lists + 1)];
    expect(closed(compiled(allowed))).toEqual([]);
    expect(compiled(allowed).table.sets.size).toBeGreaterThan(0);

    const compiler = compiled(tooLarge);
    expect(compiler.problems).toEqual([
      {
        title: "red/a",
        effect: "denies more than it says",
        reason: expect.stringContaining("has more than 1000 different"),
      },
    ]);
    expect(compiler.table.sets.size).toBe(new PolicyCompiler({ node: "here" }).table.sets.size);
    expect(problemOf(tooLarge, cluster(tooLarge))).toContain("has more than 1000 different");
    expect(compiler.closedPolicies).toEqual([
      { key: KEY, reason: expect.stringContaining("has more than 1000 different") },
    ]);
    // Other nodes have no pod that it selects.
    const other = new PolicyCompiler({ node: "other" });
    other.update(changesBetween(NO_RESOURCES, cluster(tooLarge)));
    expect([other.problems.length, other.closedPolicies]).toEqual([1, []]);
    const rules = [...compiler.table.chains.values()].flatMap((chain) => chain.rules);
    expect(rules.filter(({ comment }) => comment?.startsWith("red/a")).map(({ comment }) => comment)).toEqual([
      "red/a ingress 0",
    ]);
  });

  test("of the namespace is opened when another one goes, and other namespaces are as before", () => {
    const sizes = { a: 796, b: 797, c: 798, d: 799, e: 800, f: 801 };
    const policies = Object.entries(sizes).map(([name, count]) => selecting(name, count));
    policies.push(selecting("g", 802, "blue"));
    const compiler = compiled(...policies);
    expect(closed(compiler)).toEqual(["red/f"]);
    expect(policies.filter((each) => problemOf(each, cluster(...policies)) !== undefined)).toEqual(
      policies.slice(5, 6),
    );

    compiler.update(changesBetween(cluster(...policies), cluster(...policies.slice(1))));
    expect(closed(compiler)).toEqual([]);

    compiler.update(changesBetween(cluster(...policies.slice(1)), cluster(...policies)));
    expect(closed(compiler)).toEqual(["red/f"]);
  });

  /** What the kernel gets, without what only people read. */
  const contentOf = ({ table }: PolicyCompiler) => ({
    chains: new Map(
      Array.from(table.chains, ([name, { rules }]) => [name, rules.map(({ expressions }) => expressions)]),
    ),
    sets: new Map(Array.from(table.sets, ([name, { elements }]) => [name, new Set(elements.keys())])),
  });

  test("that grew while it was enforced is as if it had never been smaller: a restarted agent finds its own table", () => {
    const [small, tooLarge] = [selecting("a", 3), selecting("a", LARGEST_POLICY.lists + 1)];
    const started = workloadEndpoint.make(
      { ...endpoint.metadata, name: "here-k8s-b-eth0" },
      { ...endpoint.spec, interfaceName: "vend1", ipNetworks: ["10.0.0.2/32"] },
    );
    const states = [
      cluster(small),
      cluster(tooLarge),
      // A pod that starts while the policy is too large.
      { ...cluster(tooLarge), endpoints: [endpoint, started] },
      { ...cluster(small), endpoints: [endpoint, started] },
      cluster(),
    ];
    const compiler = new PolicyCompiler({ node: "here" });
    let before: PolicyResources = NO_RESOURCES;
    for (const state of states) {
      compiler.update(changesBetween(before, state));
      before = state;
      const fresh = new PolicyCompiler({ node: "here" });
      fresh.update(changesBetween(NO_RESOURCES, state));

      expect(contentOf(compiler)).toEqual(contentOf(fresh));
      expect(closed(compiler)).toEqual(closed(fresh));
    }
  });

  test("of the namespace does not depend on the order in which policies come", () => {
    const sizes = { a: 1_000, b: 999, c: 998, d: 997, e: 6, f: 5, g: 1_000 };
    const policies = Object.entries(sizes).map(([name, count]) => selecting(name, count));
    const wanted = compiled(...policies);
    expect(closed(wanted).toSorted()).toEqual(["red/a", "red/g"]);
    for (const order of [policies.toReversed(), [...policies.slice(3), ...policies.slice(0, 3)]]) {
      const compiler = new PolicyCompiler({ node: "here" });
      for (let count = 1; count <= order.length; count++) {
        const [before, now] = [order.slice(0, count - 1), order.slice(0, count)];
        compiler.update(changesBetween(count === 1 ? NO_RESOURCES : cluster(...before), cluster(...now)));
      }
      expect(closed(compiler).toSorted()).toEqual(closed(wanted).toSorted());
      expect(contentOf(compiler)).toEqual(contentOf(wanted));
    }
  });

  describe("opens nothing that it closes as it is written", () => {
    const other = workloadEndpoint.make(
      { name: "here-k8s-b-eth0", namespace: "blue", labels: { [`${identity.labelPrefix}namespace`]: "blue" } },
      { node: "here", interfaceName: "vend1", ipNetworks: ["10.0.0.2/32"], profiles: ["open"] },
    );
    const pod = workloadEndpoint.make(endpoint.metadata, { ...endpoint.spec, profiles: ["open"] });
    const open = profile.make({ name: "open" }, { ingress: [{ action: "Allow" }], egress: [{ action: "Allow" }] });
    const tooMany = selecting("a", LARGEST_POLICY.lists + 1).spec.ingress ?? [];
    const allowAll: PolicyRule = { action: "Allow" };
    const policy = (name: string, own: Partial<NetworkPolicy["spec"]>) =>
      networkPolicy.make({ name, namespace: "red" }, { tier: "default", types: ["Ingress", "Egress"], ...own });
    const verdicts = (...policies: readonly NetworkPolicy[]) => {
      const tiers = [
        tier.make({ name: "first" }, { order: 1, defaultAction: "Deny" }),
        tier.make({ name: "last" }, { order: 9, defaultAction: "Deny" }),
      ];
      const resources = { ...cluster(...policies), endpoints: [pod, other], profiles: [open], tiers };
      const judge = (from: WorkloadEndpoint, to: WorkloadEndpoint) => {
        const [source, destination] = [from, to].map(({ spec }) =>
          parseAddress(spec.ipNetworks?.[0]?.split("/")[0] ?? ""),
        );
        if (source === undefined || destination === undefined) throw new Error("No address");
        const packet = { source, destination, protocol: 6, destinationPort: 80 };
        const settingsOf = (node: string) => nodeAgentSettings([], node);
        const ends = { source: { workload: from, node: undefined }, destination: { workload: to, node: undefined } };
        return explain({ packet, ...ends, settingsOf }, resources).verdict;
      };
      return { ingress: judge(other, pod), egress: judge(pod, other) };
    };
    const [ALLOWED, DENIED] = [
      { ingress: "allow", egress: "allow" },
      { ingress: "deny", egress: "deny" },
    ] as const;
    const large = (own: Partial<NetworkPolicy["spec"]> = {}) =>
      policy("m", { ingress: [...tooMany, allowAll], ...own });

    test("in the directions of its types, and closes no other", () => {
      expect(verdicts(policy("m", { ingress: [allowAll], egress: [allowAll] }))).toEqual(ALLOWED);
      expect(verdicts(large())).toEqual(DENIED);
      expect(verdicts(large({ types: ["Ingress"] }))).toEqual({ ingress: "deny", egress: "allow" });
      const egress = policy("m", { types: ["Egress"], egress: [...tooMany, allowAll] });
      expect(verdicts(egress)).toEqual({ ingress: "allow", egress: "deny" });
    });

    test("no later policy, tier or profile allows what reaches it", () => {
      const rules = { ingress: [allowAll], egress: [allowAll] };
      expect(verdicts(large({ order: 1 }), policy("n", { ...rules, order: 2 }))).toEqual(DENIED);
      expect(verdicts(large({ tier: "first" }), policy("n", { ...rules, tier: "last" }))).toEqual(DENIED);
      expect(verdicts(large({ ingress: [...tooMany, { action: "Pass" }] }))).toEqual(DENIED);
    });

    test("what an earlier policy decides does not reach it", () => {
      const rules = { ingress: [allowAll], egress: [allowAll] };
      expect(verdicts(large({ order: 2 }), policy("n", { ...rules, order: 1 }))).toEqual(ALLOWED);
      expect(verdicts(large({ tier: "last" }), policy("n", { ...rules, tier: "first" }))).toEqual(ALLOWED);
    });
  });

  test("in no namespace is carried out: only administrators write it", () => {
    const rules = selecting("a", LARGEST_POLICY.lists + 1).spec.ingress ?? [];
    const options = { doNotTrack: false, preDNAT: false, applyOnForward: false };
    const policy = globalNetworkPolicy.make({ name: "a" }, { ...spec(...rules), ...options });
    const compiler = new PolicyCompiler({ node: "here" });
    compiler.update(changesBetween(NO_RESOURCES, { ...cluster(), globalNetworkPolicies: [policy] }));

    expect([compiler.problems, problemOf(policy, cluster())]).toEqual([[], undefined]);
  });
});
