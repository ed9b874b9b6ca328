/** Random policies of few labels and ports, so that they often meet the traffic of the tests. Pure. */
import { globalNetworkPolicy } from "../../src/model/global-network-policy.ts";
import { hostEndpoint } from "../../src/model/host-endpoint.ts";
import type { PolicyRule } from "../../src/model/policy-rule.ts";
import { DEFAULT_ALLOW_PROFILE } from "../../src/model/profile.ts";
import type { Resource } from "../../src/model/resource.ts";
import { HOST_NODE } from "../policy/host-site.ts";
import type { WrittenPolicy } from "../policy/policy-site.ts";

export type Random = () => number;

export interface RandomPolicies {
  readonly networkPolicies: readonly WrittenPolicy[];
  readonly globalPolicies: readonly Resource[];
  readonly hostEndpoints: readonly Resource[];
}

const TIERS = ["default", "first", "passing"] as const;

export function randomPolicies(random: Random): RandomPolicies {
  const pick = <Value>(...values: readonly Value[]) => pickOf(random, values);
  const many = (most: number) => Array.from({ length: Math.floor(random() * (most + 1)) }, (_, index) => index);
  const ofHost = () => {
    const option = pick("none", "none", "applyOnForward", "preDNAT");
    return {
      ...(option === "none" ? {} : { applyOnForward: true }),
      ...(option === "preDNAT" ? { preDNAT: true } : {}),
      selector: pick("has(host)", "host == 'out'"),
      ...rulesOf(random, option === "preDNAT" ? "Ingress" : pick("Ingress", "Egress", "both")),
    };
  };
  return {
    networkPolicies: many(4).map((index) => ({
      namespace: pick("x", "y"),
      name: `policy-${index}`,
      spec: { selector: workloadSelector(random), ...rulesOf(random, pick("Ingress", "Egress", "both")) },
    })),
    globalPolicies: [
      ...many(3).map((index) =>
        globalPolicy(`global-${index}`, {
          tier: pick(...TIERS),
          order: pick(1, 2, 3),
          selector: workloadSelector(random),
          ...rulesOf(random, pick("Ingress", "Egress", "both")),
        }),
      ),
      ...many(2).map((index) => globalPolicy(`host-${index}`, { tier: "default", order: pick(1, 2), ...ofHost() })),
    ],
    hostEndpoints: pick<readonly string[]>([], ["out"], ["out", "side"]).map((name) =>
      hostEndpoint.make(
        { name, labels: { host: name } },
        {
          node: HOST_NODE,
          interfaceName: `${name}0`,
          profiles: pick([], [DEFAULT_ALLOW_PROFILE], [DEFAULT_ALLOW_PROFILE]),
        },
      ),
    ),
  };
}

function globalPolicy(name: string, spec: Readonly<Record<string, unknown>>): Resource {
  return globalNetworkPolicy.make({ name }, spec as never);
}

export function pickOf<Value>(random: Random, values: readonly Value[]): Value {
  const value = values[Math.floor(random() * values.length)];
  if (value === undefined) throw new Error("nothing to pick from");
  return value;
}

function workloadSelector(random: Random): string {
  return pickOf(random, ["app == 'a'", "app == 'b'", "has(app)", "app == 'a' || app == 'b'", "role == 'server'"]);
}

type Types = "Ingress" | "Egress" | "both";

function rulesOf(random: Random, types: Types) {
  const rules = () => Array.from({ length: 1 + Math.floor(random() * 3) }, () => ruleOf(random));
  return {
    types: types === "both" ? (["Ingress", "Egress"] as const) : [types],
    ...(types === "Egress" ? {} : { ingress: rules() }),
    ...(types === "Ingress" ? {} : { egress: rules() }),
  } as { types: ("Ingress" | "Egress")[]; ingress?: PolicyRule[]; egress?: PolicyRule[] };
}

const NETS = [
  ["10.50.0.0/16"],
  ["198.51.100.0/24"],
  ["203.0.113.2/32", "198.51.100.2/32"],
  ["fd50::/64"],
  ["2001:db8:1::/64"],
];

function ruleOf(random: Random): PolicyRule {
  const pick = <Value>(...values: readonly Value[]) => pickOf(random, values);
  const match = pick<Partial<PolicyRule>>(
    {},
    {},
    { protocol: "TCP" },
    { protocol: "UDP" },
    { protocol: pick("TCP", "UDP"), destination: { ports: pick([80], [81, 99], ["80:90"]) } },
    { protocol: "TCP", destination: { ports: pick([80], [81]) } },
    { ipVersion: pick(4, 6) },
    { protocol: pick("ICMP", "ICMPv6") },
  );
  const peer = pick(
    {},
    {},
    { source: pick({ selector: "app == 'a'" }, { selector: "role == 'server'" }, { nets: pick(...NETS) }) },
    { destination: { ...match.destination, ...pick({ selector: "app == 'b'" }, { nets: pick(...NETS) }) } },
  );
  const action = pick("Allow", "Allow", "Allow", "Allow", "Deny", "Deny", "Pass", "Log");
  return { action, ...match, ...peer } as PolicyRule;
}
