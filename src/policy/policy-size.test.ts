import { describe, expect, spyOn, test } from "bun:test";
import fc from "fast-check";
import { changesBetween, NO_RESOURCES } from "../../test/support/policy-changes.ts";
import { identity } from "../identity.ts";
import { parseAddress } from "../ip/address.ts";
import { globalNetworkPolicy } from "../model/global-network-policy.ts";
import { globalNetworkSet } from "../model/global-network-set.ts";
import { NETWORK_POLICY, NODE_AGENT_CONFIGURATION } from "../model/kinds.ts";
import { type NetworkPolicy, networkPolicy } from "../model/network-policy.ts";
import { networkSet } from "../model/network-set.ts";
import { nodeAgentConfiguration, nodeAgentSettings } from "../model/node-agent-configuration.ts";
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
import { TableBuilder } from "./table/table-builder.ts";

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

const SLICE = { namespace: "red", service: "db", addresses: ["10.9.0.1", "10.9.0.2"], ports: [] };
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
  const LIMITS = { lists: 40, rules: 400, addresses: 1_000 };
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
      const limits = new NamespaceLimits({ lists: 40, rules: 40_000, addresses: 1_000 });
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
    const limits = new NamespaceLimits({ lists: 12, rules: 100, addresses: 1_000 });
    for (const record of records) limits.note("red", record.key, record);
    const closed = () => limits.settle().map(([key, record]) => [key, record?.problem !== undefined]);
    expect(closed().filter(([, isClosed]) => isClosed)).toEqual([]);
    limits.setLimits({ lists: 11, rules: 100, addresses: 1_000 });
    expect(closed()).toEqual([["p9", true]]);
    limits.setLimits({ lists: 12, rules: 100, addresses: 1_000 });
    expect(closed()).toEqual([["p9", false]]);
    limits.setLimits({ lists: 12, rules: 100, addresses: 1_000 });
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

describe("the addresses of the lists of a namespace", () => {
  const NAMESPACE = `${identity.labelPrefix}namespace`;
  const LIMIT = 100;
  const pod = (index: number, { namespace = "shop", addresses = 1 } = {}) =>
    workloadEndpoint.make(
      { name: `pod-${index}`, namespace, labels: { [NAMESPACE]: namespace, app: `app-${index % 3}` } },
      {
        ...{ node: index === 0 ? "here" : "there", interfaceName: `vend${index}` },
        ipNetworks: upTo(addresses).map((each) => `10.${each}.${index >> 8}.${index & 255}/32`),
        ports: [{ name: "web", protocol: "TCP", port: 80 }],
      },
    );
  /** Selectors of all pods of the cluster, no two of which are the same. */
  const everybody = (name: string, count: number) =>
    networkPolicy.make(
      { name, namespace: "red" },
      spec(...upTo(count).map((each) => from({ namespaceSelector: `${name}${each} not in {'v'}` }))),
    );
  const own = pod(0, { namespace: "red" });
  const cluster = (pods: number, ...networkPolicies: readonly NetworkPolicy[]): PolicyResources => ({
    ...NO_RESOURCES,
    ...{ endpoints: [own, ...upTo(pods - 1).map((each) => pod(each + 1))], networkPolicies },
    policyLimits: { ...LARGEST_NAMESPACE, addresses: LIMIT },
  });
  const setting = (namespacePolicyAddresses: number) => ({
    ...{ kind: "put" as const, key: NODE_AGENT_CONFIGURATION.key({ name: "default" }), previous: undefined },
    value: nodeAgentConfiguration.make({ name: "default" }, { namespacePolicyAddresses }),
  });
  const limited = (namespacePolicyAddresses = LIMIT) => {
    const compiler = new PolicyCompiler({ node: "here", hasServices: true });
    const configurations = [setting(namespacePolicyAddresses)];
    compiler.update({ ...changesBetween(NO_RESOURCES, NO_RESOURCES), configurations });
    return compiler;
  };
  const compiled = (resources: PolicyResources, addresses = LIMIT) => {
    const compiler = limited(addresses);
    compiler.update(changesBetween(NO_RESOURCES, resources));
    return compiler;
  };
  const closed = ({ problems }: PolicyCompiler) => problems.map(({ title }) => title).toSorted();
  const judged = (resources: PolicyResources) =>
    resources.networkPolicies
      .filter((policy) => problemOf(policy, resources) !== undefined)
      .map(({ metadata }) => `${metadata.namespace}/${metadata.name}`)
      .toSorted();
  const elementsIn = ({ table }: PolicyCompiler) =>
    table.sets
      .values()
      .filter(({ set }) => set.data === undefined && !set.name.startsWith("sidecars"))
      .reduce((sum, { elements }) => sum + elements.size, 0);

  test("a policy beyond the limit denies and is reported, and none of its elements is built", () => {
    const [within, beyond] = [cluster(20, everybody("a", 5)), cluster(20, everybody("a", 6))];
    expect([closed(compiled(within)), judged(within)]).toEqual([[], []]);
    expect(elementsIn(compiled(within))).toBe(LIMIT);

    using put = spyOn(TableBuilder.prototype, "putElement");
    const compiler = compiled(beyond);
    expect([closed(compiler), judged(beyond)]).toEqual([["red/a"], ["red/a"]]);
    expect(compiler.problems[0]?.reason).toContain(`more than ${LIMIT} addresses`);
    // Those of the two maps of the interface.
    expect([elementsIn(compiler), put.mock.calls.length]).toEqual([0, 2]);
  });

  const toNamed = (...names: string[]) =>
    networkPolicy.make({ name: "a", namespace: "red" }, { ...spec(), types: ["Egress"], egress: [toPorts(names)] });
  const withPorts = (endpoint: WorkloadEndpoint, ports: NonNullable<WorkloadEndpoint["spec"]["ports"]>) =>
    workloadEndpoint.make(endpoint.metadata, { ...endpoint.spec, ports });
  const OTHER_PORTS = [
    { name: "metrics", protocol: "TCP", port: 9_090 },
    { protocol: "TCP", port: 81, hostPort: 81 },
  ];

  test.each<[string, PolicyResources, number]>([
    ["a label that few have", cluster(60, selects("a", { selector: "has(x)", namespaceSelector: "all()" })), 60],
    ["a label of the pods", cluster(60, selects("a", { selector: "app == 'app-1'", namespaceSelector: "all()" })), 20],
    [
      "labels of the pods",
      cluster(60, selects("a", { selector: "app in {'app-1', 'app-2', 'app-1'}", namespaceSelector: "all()" })),
      40,
    ],
    [
      "the rarer of two",
      cluster(60, selects("a", { selector: "app == 'app-1' && app == 'app-9'", namespaceSelector: "all()" })),
      0,
    ],
    [
      "its own namespace",
      { ...cluster(1, selects("a", { selector: "has(x)" })), endpoints: [own, pod(1, { namespace: "red" }), pod(2)] },
      2,
    ],
    ["what is not selected", cluster(60, selects("a", { notSelector: "has(x)" })), 61],
    [
      "either of two values",
      cluster(
        60,
        selects("a", { selector: "app == 'app-1' || app == 'app-2' || app == 'app-1'", namespaceSelector: "all()" }),
      ),
      40,
    ],
    [
      "either of two values that both sides require",
      cluster(
        60,
        selects("a", {
          selector: "(has(x) && app == 'app-1') || (app in {'app-1', 'app-9'} && has(y))",
          namespaceSelector: "all()",
        }),
      ),
      20,
    ],
    [
      "either of two labels",
      cluster(60, selects("a", { selector: "app == 'app-1' || x == 'y'", namespaceSelector: "all()" })),
      60,
    ],
    [
      "either of a value and another condition",
      cluster(60, selects("a", { selector: "app == 'app-1' || has(x)", namespaceSelector: "all()" })),
      60,
    ],
    ["named ports", cluster(60, toNamed("web")), 60],
    [
      "ports of the name and protocol only",
      {
        ...cluster(1, toNamed("web", "dns")),
        endpoints: [
          own,
          withPorts(pod(1), [{ name: "web", protocol: "UDP", port: 80 }]),
          withPorts(pod(2, { addresses: 2 }), [{ name: "dns", protocol: "TCP", port: 53 }, ...OTHER_PORTS]),
          withPorts(pod(3), OTHER_PORTS),
        ],
      },
      3,
    ],
    ["ports of a name that nobody has", cluster(60, toNamed("grpc")), 0],
    [
      "no pods that have finished",
      {
        ...cluster(1, selects("a", { selector: "has(x)", namespaceSelector: "all()" })),
        endpoints: [own, pod(1), { ...pod(2), status: { phase: "Succeeded" } }],
      },
      2,
    ],
    ["a long list", cluster(60, selects("a", { nets: upTo(20).map((each) => `10.0.${each}.0/24`) })), 40],
    ["a service", { ...cluster(60, selects("a", { services: { name: "db" } })), serviceEndpoints: [SLICE] }, 2],
    [
      "a network set",
      {
        ...cluster(2, selects("a", { selector: "has(x)", namespaceSelector: "global()" })),
        globalNetworkSets: [globalNetworkSet.make({ name: "n" }, { nets: ["10.0.0.0/8", "192.0.2.1"] })],
      },
      6,
    ],
    [
      "addresses of both policies once",
      cluster(60, ...["a", "b"].map((name) => selects(name, { selector: "has(x)", namespaceSelector: "all()" }))),
      60,
    ],
  ])("counts %s", (_, resources, count) => {
    const closedAt = (addresses: number) => {
      const compiler = limited(addresses);
      compiler.update(changesBetween(NO_RESOURCES, resources));
      const limits = { ...LARGEST_NAMESPACE, addresses };
      expect(closed(compiler)).toEqual(judged({ ...resources, policyLimits: limits }));
      return closed(compiler).length > 0;
    };
    expect([closedAt(Math.max(1, count)), count === 0 || closedAt(count - 1)]).toEqual([false, true]);
  });

  test("pods that start close it, and one that comes and goes at the limit changes nothing", () => {
    const policy = everybody("a", 5);
    let state = cluster(20, policy);
    const compiler = compiled(state);
    const change = (now: PolicyResources) => {
      compiler.update(changesBetween(state, now));
      state = now;
      return closed(compiler);
    };
    expect(change(cluster(21, policy))).toEqual(["red/a"]);
    expect(elementsIn(compiler)).toBe(0);
    for (const pods of [20, 21, 20, 16]) expect(change(cluster(pods, policy))).toEqual(["red/a"]);
    expect(change(cluster(15, policy))).toEqual([]);
    expect(elementsIn(compiler)).toBe(75);
    for (const pods of [16, 20]) expect(change(cluster(pods, policy))).toEqual([]);
    expect(change(cluster(21, policy))).toEqual(["red/a"]);
    // A change of a policy of the namespace decides as an agent that starts.
    expect(change(cluster(20, policy))).toEqual(["red/a"]);
    expect(change(cluster(20, policy, selects("b", { nets: ["10.0.0.0/8"] })))).toEqual([]);
  });

  test("warn before pods that start close a policy, and until there are much fewer", () => {
    const policy = everybody("a", 5);
    let state = cluster(15, policy);
    const compiler = compiled(state);
    const warned = (now: PolicyResources) => {
      compiler.update(changesBetween(state, now));
      state = now;
      return compiler.warnings.map(({ title, effect }) => `${title} ${effect}`);
    };
    const WARNING = "red is a namespace near its limit";
    expect(warned(state)).toEqual([]);
    expect([warned(cluster(16, policy)), closed(compiler)]).toEqual([[WARNING], []]);
    expect(compiler.warnings[0]?.reason).toContain(`most of ${LIMIT} addresses`);
    expect([warned(cluster(11, policy)), warned(cluster(10, policy))]).toEqual([[WARNING], []]);
    expect([warned(cluster(20, policy)), warned(cluster(20))]).toEqual([[WARNING], []]);
    // What is closed already is a problem.
    expect([warned(cluster(21, policy)), closed(compiler)]).toEqual([[], ["red/a"]]);
  });

  test("are not built for thousands of pods that start at once", () => {
    const [before, now] = [cluster(20, everybody("a", 5)), cluster(5_000, everybody("a", 5))];
    const compiler = compiled(before);
    using put = spyOn(TableBuilder.prototype, "putElement");
    compiler.update(changesBetween(before, now));
    expect([closed(compiler), elementsIn(compiler)]).toEqual([["red/a"], 0]);
    expect(put.mock.calls.length).toBeLessThanOrEqual(5 * 200);
  });

  test("are not built for a network set that grows, or a service", () => {
    const rules = [{ selector: "has(x)" }, { services: { name: "db" } }].map(from);
    const policy = networkPolicy.make({ name: "a", namespace: "red" }, spec(...rules));
    const withMany = (count: number): PolicyResources => {
      const nets = upTo(count).map((each) => `10.${each >> 8}.${each & 255}.1`);
      const set = networkSet.make({ name: "n", namespace: "red", labels: { x: "" } }, { nets });
      return { ...cluster(2, policy), networkSets: [set], serviceEndpoints: [{ ...SLICE, addresses: nets }] };
    };
    const [small, large] = [withMany(1), withMany(1_000)];
    const compiler = compiled(small);
    expect([closed(compiler), elementsIn(compiler)]).toEqual([[], 2]);
    using put = spyOn(TableBuilder.prototype, "putElement");
    compiler.update(changesBetween(small, large));
    expect([closed(compiler), judged(large), put.mock.calls.length]).toEqual([["red/a"], ["red/a"], 0]);
  });

  const toService = (name: string) =>
    networkPolicy.make(
      { name, namespace: "red" },
      {
        ...spec(from({ services: { name: "db" } })),
        ...{ types: ["Ingress", "Egress"], egress: [{ action: "Allow", destination: { services: { name: "db" } } }] },
      },
    );
  const serviceOf = (count: number, first = 0) => ({
    ...SLICE,
    addresses: upTo(count).map((each) => `10.9.${(first + each) >> 8}.${(first + each) & 255}`),
    ports: [80, 81].map((port) => ({ protocol: 6, port })),
  });

  test("are those that a service has, if the same change opens the policy that had too many", () => {
    const withEndpoints = (count: number) => ({
      ...cluster(1, toService("a")),
      serviceEndpoints: [serviceOf(count)],
      policyLimits: { ...LARGEST_NAMESPACE, addresses: 600 },
    });
    for (const count of [60, 70, 80, 90, 100, 120, 140]) {
      const [before, now] = [withEndpoints(250), withEndpoints(count)];
      const compiler = compiled(before, 600);
      expect(closed(compiler)).toEqual(["red/a"]);
      compiler.update(changesBetween(before, now));
      expect(closed(compiler)).toEqual(count * 3 <= 450 ? [] : ["red/a"]);
      expect(contentOf(compiler)).toEqual(contentOf(compiled(now, 600)));
    }
  });

  test("are counted when all of a change is known: pods that replace others close nothing", () => {
    const policy = everybody("a", 1);
    const withPods = (first: number) => ({
      ...cluster(1, policy),
      endpoints: [own, ...upTo(500).map((each) => pod(first + each))],
    });
    const [before, now] = [withPods(1), withPods(301)];
    const changes = changesBetween(before, now);
    for (const endpoints of [changes.endpoints, changes.endpoints.toReversed()]) {
      const compiler = compiled(before, 600);
      compiler.update({ ...changes, endpoints });
      expect([closed(compiler), elementsIn(compiler)]).toEqual([[], 501]);
      expect(contentOf(compiler)).toEqual(contentOf(compiled(now, 600)));
    }
  });

  /** Closed whatever the addresses are. */
  const tooManyLists = upTo(LARGEST_POLICY.lists + 1).map((each) => from({ selector: `app == 'x${each}'` }));

  test("are never more than the limit, in whichever order policies, pods, services and limits come", () => {
    const step = fc.record({
      pods: fc.option(fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 200, max: 260 }))),
      firstPod: fc.option(fc.constantFrom(1, 20, 300)),
      endpoints: fc.option(fc.oneof(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 60, max: 140 }))),
      firstEndpoint: fc.option(fc.constantFrom(0, 30, 200)),
      limit: fc.option(fc.constantFrom(LIMIT, LIMIT / 2, LIMIT * 2, LIMIT * 4), { freq: 1 }),
      policy: fc.option(
        fc.record({ lists: fc.integer({ min: 0, max: 12 }), name: fc.constantFrom("a", "b", "c", "service") }),
        { freq: 1 },
      ),
      isReversed: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        const compiler = limited();
        const lists = new Map([["service", 1]]);
        const policyOf = (name: string, count: number) =>
          name === "service" ? toService(name) : everybody(name, count);
        let [limit, state] = [LIMIT, NO_RESOURCES as PolicyResources];
        let [pods, firstPod, endpoints, firstEndpoint] = [1, 1, 1, 0];
        for (const each of steps) {
          const before = [state.networkPolicies.length, limit, ...lists];
          [pods, firstPod] = [each.pods ?? pods, each.firstPod ?? firstPod];
          [endpoints, firstEndpoint] = [each.endpoints ?? endpoints, each.firstEndpoint ?? firstEndpoint];
          limit = each.limit ?? limit;
          if (each.policy?.lists === 0) lists.delete(each.policy.name);
          else if (each.policy) lists.set(each.policy.name, each.policy.lists);
          const policies = Array.from(lists, ([name, count]) => policyOf(name, count));
          const now: PolicyResources = {
            ...cluster(1, ...policies),
            endpoints: [own, ...upTo(pods - 1).map((index) => pod(firstPod + index))],
            serviceEndpoints: [serviceOf(endpoints, firstEndpoint)],
            policyLimits: { ...LARGEST_NAMESPACE, addresses: limit },
          };
          const changes = changesBetween(state, now);
          const inOrder = each.isReversed ? changes.endpoints.toReversed() : changes.endpoints;
          compiler.update({ ...changes, endpoints: inOrder, configurations: [setting(limit)] });
          state = now;
          expect(elementsIn(compiler)).toBeLessThanOrEqual(limit);
          expect(closed(compiled(now, limit))).toEqual(judged(now));
          if (!Bun.deepEquals(before, [policies.length, limit, ...lists]))
            expect(closed(compiler)).toEqual(judged(now));
          const enforced = policies.map((policy) => {
            const isClosed = closed(compiler).includes(`red/${policy.metadata.name}`);
            const { types = [] } = policy.spec;
            return isClosed ? networkPolicy.make(policy.metadata, { ...spec(...tooManyLists), types }) : policy;
          });
          expect(contentOf(compiler)).toEqual(
            contentOf(compiled({ ...now, networkPolicies: enforced }, LARGEST_NAMESPACE.addresses)),
          );
        }
      }),
      { numRuns: 25 },
    );
  });
});

function selects(name: string, source: NonNullable<PolicyRule["source"]>): NetworkPolicy {
  return networkPolicy.make({ name, namespace: "red" }, spec(from(source)));
}

/** What the kernel gets, without what only people read. */
function contentOf({ table }: PolicyCompiler) {
  return {
    chains: new Map(
      Array.from(table.chains, ([name, { rules }]) => [name, rules.map(({ expressions }) => expressions)]),
    ),
    sets: new Map(Array.from(table.sets, ([name, { elements }]) => [name, new Set(elements.keys())])),
  };
}
