import { describe, expect, test } from "bun:test";
import { globalPolicy } from "../../../test/support/global-policy.ts";
import { changesBetween, NO_RESOURCES } from "../../../test/support/policy-changes.ts";
import { identity } from "../../identity.ts";
import { ENDPOINT } from "../../model/kinds.ts";
import { networkPolicy } from "../../model/network-policy.ts";
import { type Profile, profile } from "../../model/profile.ts";
import { tier } from "../../model/tier.ts";
import { type WorkloadEndpoint, workloadEndpoint } from "../../model/workload-endpoint.ts";
import { PolicyCompiler } from "../../policy/compile/compiler.ts";
import type { PolicyResources } from "../../policy/judge/resources.ts";
import type { SidecarRule } from "../protocol/sidecar-state.ts";
import { type SidecarState, SidecarStates } from "./sidecar-states.ts";

const SERVER = "here-k8s-server-eth0";
const KEY = ENDPOINT.key({ name: SERVER, namespace: "shop" });

describe("SidecarStates", () => {
  test("a pod's state has the tiers and policies of its ingress in order, and the rules of its profiles", () => {
    const state = stateOf({
      tiers: [tier.make({ name: "first" }, { order: 1, defaultAction: "Pass" })],
      globalNetworkPolicies: [
        globalPolicy("early", { tier: "first", order: 1, ingress: [{ action: "Pass" }] }),
        globalPolicy("of-others", { tier: "first", order: 1, selector: "app == 'other'", ingress: [] }),
        globalPolicy("egress-only", { tier: "default", order: 1, types: ["Egress"], egress: [] }),
        globalPolicy("second", { tier: "default", order: 2, ingress: [{ action: "Deny" }] }),
      ],
      networkPolicies: [
        networkPolicy.make({ name: "one", namespace: "shop" }, { tier: "default", order: 1, types: ["Ingress"] }),
      ],
    });
    const titleOf = (key: string) => state.policies.get(key)?.title ?? "";

    expect(state.addresses).toEqual(["10.0.0.1", "fd00::1"]);
    expect(
      state.evaluation.tiers.map(({ policies, ...each }) => ({ ...each, policies: policies.map(titleOf) })),
    ).toEqual([
      { name: "first", defaultAction: "Pass", policies: ["early"] },
      { name: "default", defaultAction: "Deny", policies: ["shop/one", "second"] },
    ]);
    expect(state.evaluation.profiles).toEqual([{ index: 0, action: "Allow", source: {}, destination: {} }]);
    expect(state.policies.size).toBe(3);
  });

  test("rules that cannot match TCP and Log rules are left out; the others keep their index", () => {
    const rules = rulesOf([
      { action: "Allow", protocol: "UDP" },
      { action: "Log" },
      { action: "Allow", notProtocol: "TCP" },
      { action: "Deny", protocol: "ICMP", icmp: { type: 8 } },
      { action: "Deny", notProtocol: "UDP", ipVersion: 4 },
      { action: "Allow", protocol: "TCP", destination: { ports: [80, "8000:8010"] }, source: { notPorts: [22] } },
    ]);
    expect(rules).toEqual([
      { index: 4, action: "Deny", family: 4, source: {}, destination: {} },
      {
        index: 5,
        action: "Allow",
        source: { notPorts: { ranges: [[22, 22]] } },
        destination: {
          ports: {
            ranges: [
              [80, 80],
              [8000, 8010],
            ],
          },
        },
      },
    ]);
  });

  test("networks are written in the rule; selectors, services and named ports are sets", () => {
    const ingress = [
      {
        action: "Allow",
        protocol: "TCP",
        source: {
          nets: ["10.0.0.0/8"],
          notNets: ["10.1.0.0/16"],
          selector: "app == 'client'",
          notSelector: "app == 'server'",
        },
        destination: { ports: ["web"] },
      },
    ];
    const state = stateOf({ globalNetworkPolicies: [globalPolicy("policy", { tier: "default", ingress })] });
    const [rule] = [...state.policies.values()][0]?.rules ?? [];
    const content = (names: readonly (string | undefined)[] = []) => names.map((name) => membersOf(state, name));
    expect(rule?.source.nets).toEqual(["10.0.0.0/8"]);
    expect(rule?.source.notNets).toEqual(["10.1.0.0/16"]);
    expect(content(rule?.source.sets)).toEqual([["10.0.0.2"]]);
    expect(content(rule?.source.notSets)).toEqual([["10.0.0.1", "fd00::1"]]);
    expect(content([rule?.destination.ports?.set])).toEqual([["10.0.0.1 6 8080", "10.0.0.2 6 8080", "fd00::1 6 8080"]]);
    expect(rule?.source.identities).toBeUndefined();
  });

  test("a service whose ports are of several protocols has members for TCP only", () => {
    const services = { services: { name: "dns", namespace: "shop" } };
    const ports = [
      { protocol: 6, port: 53 },
      { protocol: 17, port: 53 },
    ];
    const state = stateOf({
      globalNetworkPolicies: [
        globalPolicy("policy", { tier: "default", ingress: [{ action: "Allow", destination: services }] }),
      ],
      serviceEndpoints: [{ namespace: "shop", service: "dns", addresses: ["10.0.0.9"], ports }],
    });
    expect(Array.from(state.sets.keys(), (name) => membersOf(state, name))).toEqual([["10.0.0.9 6 53"]]);
  });

  test.each([
    ["of service accounts by name", { serviceAccounts: { names: ["buyer"] } }, ["office/buyer", "shop/buyer"]],
    ["of service accounts by label", { serviceAccounts: { selector: "role == 'admin'" } }, ["shop/admin"]],
    ["of namespaces by label", { namespaceSelector: "team == 'a'" }, ["office/buyer"]],
    [
      "of both, whatever the labels of pods",
      { namespaceSelector: "all()", serviceAccounts: { names: ["admin"] }, selector: "app == 'client'" },
      ["shop/admin"],
    ],
    ["of no namespace", { namespaceSelector: "global()" }, []],
  ])("a source %s has a set of identities", (_, source, identities) => {
    const state = stateOf({
      globalNetworkPolicies: [globalPolicy("policy", { tier: "default", ingress: [{ action: "Allow", source }] })],
    });
    const [rule] = [...state.policies.values()][0]?.rules ?? [];
    expect(membersOf(state, rule?.source.identities)).toEqual(identities);
  });

  test("a source in a policy of a namespace is of this namespace, unless it names another", () => {
    const spec = {
      tier: "default",
      types: ["Ingress" as const],
      ingress: [{ action: "Allow" as const, source: { selector: "app == 'client'" } }, { action: "Deny" as const }],
    };
    const state = stateOf({ networkPolicies: [networkPolicy.make({ name: "policy", namespace: "shop" }, spec)] });
    const [rule, other] = [...state.policies.values()][0]?.rules ?? [];
    expect(membersOf(state, rule?.source.identities)).toEqual(["shop/admin", "shop/buyer"]);
    expect(other?.source.identities).toBeUndefined();
  });

  test("identities follow the profiles of service accounts and namespaces", () => {
    const ingress = [{ action: "Allow", source: { serviceAccounts: { selector: "role == 'admin'" } } }];
    const resources = withPod({ globalNetworkPolicies: [globalPolicy("policy", { tier: "default", ingress })] });
    const { compiler, states } = compilerOf(resources);
    const identities = () => {
      const state = states.stateOf(KEY);
      return Array.from(state?.sets.keys() ?? [], (name) => membersOf(state, name)).at(-1);
    };
    expect(identities()).toEqual(["shop/admin"]);
    const more = { ...resources, profiles: [...resources.profiles, account("shop", "second.one", { role: "admin" })] };
    compiler.update(changesBetween(resources, more));
    expect(identities()).toEqual(["shop/admin", "shop/second.one"]);
    states.forget(KEY);
    compiler.update(changesBetween(more, resources));
    expect(identities()).toEqual(["shop/admin"]);
  });

  test("a policy that cannot be carried out denies everything, as in the kernel", () => {
    const ingress = [{ action: "Allow", destination: { services: { name: "dns", namespace: "shop" } } }];
    const { states } = compilerOf(
      withPod({ globalNetworkPolicies: [globalPolicy("policy", { tier: "default", ingress })] }),
      { hasServices: false },
    );
    const state = states.stateOf(KEY);
    expect([...(state?.policies.values() ?? [])]).toEqual([
      { title: "policy", rules: [{ index: 0, action: "Deny", source: {}, destination: {} }] },
    ]);
  });

  test("nothing is allowed to an endpoint whose interface belongs to another one", () => {
    const first = pod({ name: "here-k8s-aaa-eth0", pod: "aaa", addresses: ["10.0.0.3"], app: "other" });
    const state = stateOf({ endpoints: [...POD, first] });
    expect(state.evaluation).toEqual({ tiers: [], profiles: [] });
  });

  test("an endpoint of another node has no state", () => {
    const { states } = compilerOf(withPod({}));
    const other = ENDPOINT.key({ name: "there-k8s-client-eth0", namespace: "shop" });
    expect(states.stateOf(other)).toBeUndefined();
  });

  test("the state is another object only after a change of what is evaluated", () => {
    const resources = withPod({ globalNetworkPolicies: [globalPolicy("policy", { tier: "default", ingress: [] })] });
    const { compiler, states } = compilerOf(resources);
    const before = states.stateOf(KEY);
    const client = pod({
      name: "there-k8s-more-eth0",
      node: "there",
      pod: "more",
      addresses: ["10.0.0.7"],
      app: "client",
    });
    const more = { ...resources, endpoints: [...resources.endpoints, client] };
    compiler.update(changesBetween(resources, more));
    expect(states.stateOf(KEY)).toBe(before as SidecarState);
    const edited = [globalPolicy("policy", { tier: "default", ingress: [{ action: "Deny" }] })];
    compiler.update(changesBetween(more, { ...more, globalNetworkPolicies: edited }));
    expect(states.stateOf(KEY)).not.toBe(before as SidecarState);
  });
});

function rulesOf(ingress: readonly object[]): readonly SidecarRule[] {
  const state = stateOf({ globalNetworkPolicies: [globalPolicy("policy", { tier: "default", ingress })] });
  return [...state.policies.values()][0]?.rules ?? [];
}

function membersOf(state: SidecarState | undefined, name: string | undefined): readonly string[] {
  return [...(state?.sets.get(name ?? "")?.members() ?? [])].sort();
}

function stateOf(resources: Partial<PolicyResources>): SidecarState {
  const state = compilerOf(withPod(resources)).states.stateOf(KEY);
  if (state === undefined) throw new Error("no state");
  return state;
}

function compilerOf(resources: PolicyResources, { hasServices = true } = {}) {
  const compiler = new PolicyCompiler({ node: "here", hasServices });
  const states = new SidecarStates(compiler);
  compiler.update(changesBetween(NO_RESOURCES, resources));
  return { compiler, states };
}

function withPod(resources: Partial<PolicyResources>): PolicyResources {
  return { ...NO_RESOURCES, endpoints: POD, profiles: PROFILES, ...resources };
}

const POD = [
  pod({ name: SERVER, pod: "server", addresses: ["10.0.0.1", "fd00::1"], app: "server" }),
  pod({ name: "there-k8s-client-eth0", node: "there", pod: "client", addresses: ["10.0.0.2"], app: "client" }),
];

const PROFILES = [
  namespaceProfile("shop", { team: "b" }),
  namespaceProfile("office", { team: "a" }),
  account("shop", "buyer", {}),
  account("shop", "admin", { role: "admin" }),
  account("office", "buyer", {}),
];

function pod({ name, pod: podName, addresses, app, node = "here" }: PodShape): WorkloadEndpoint {
  return workloadEndpoint.make(
    { name, namespace: "shop", labels: { app, [`${identity.labelPrefix}namespace`]: "shop" } },
    {
      node,
      orchestrator: "k8s",
      endpoint: "eth0",
      pod: podName,
      ipNetworks: addresses.map((address) => `${address}/${address.includes(":") ? 128 : 32}`),
      profiles: ["kns.shop", "ksa.shop.buyer"],
      interfaceName: `${identity.interfacePrefix}1`,
      ports: [
        { name: "web", protocol: "TCP", port: 8080 },
        { name: "web", protocol: "UDP", port: 8080 },
      ],
    },
  );
}

interface PodShape {
  readonly name: string;
  readonly pod: string;
  readonly addresses: readonly string[];
  readonly app: string;
  readonly node?: string;
}

function namespaceProfile(name: string, labels: Readonly<Record<string, string>>): Profile {
  return profile.make(
    { name: `kns.${name}` },
    { ingress: [{ action: "Allow" }], labelsToApply: prefixed("pcns.", labels) },
  );
}

function account(namespace: string, name: string, labels: Readonly<Record<string, string>>): Profile {
  return profile.make({ name: `ksa.${namespace}.${name}` }, { labelsToApply: prefixed("pcsa.", labels) });
}

function prefixed(prefix: string, labels: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).map(([name, value]) => [`${prefix}${name}`, value]));
}
