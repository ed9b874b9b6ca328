/**
 * What is enforced of a policy that cannot be carried out exactly: it applies to the endpoints that it selects, in both
 * directions, or those of its types if it is only too large, and denies everything. Admission refuses such policies; a datastore may hold them all the same. Pure.
 */

import type { NetworkPolicy } from "../../model/network-policy.ts";
import { workloadProfileSpec } from "../../model/network-profile.ts";
import { nodeAgentSettings } from "../../model/node-agent-configuration.ts";
import { type PolicyRule, unknownCriterion } from "../../model/policy-rule.ts";
import { typesOf } from "../../model/policy-spec.ts";
import type { Profile } from "../../model/profile.ts";
import type { Direction } from "../effective-rule.ts";
import { type PolicySize, policyLimits, problemsOfSizes, sizeOfPolicy } from "../policy-size.ts";
import { addressesOfPolicies, mostAddresses } from "./list-addresses.ts";
import type { AnyEndpoint, AnyPolicy, PolicyResources } from "./resources.ts";

const DENY_ALL: PolicyRule = { action: "Deny" };
const BOTH = ["Ingress", "Egress"] as const;

export function enforcedPolicy(policy: AnyPolicy, resources: PolicyResources): AnyPolicy {
  const isWrong = problemOfMeaning(policy, resources) !== undefined;
  if (!isWrong && problemOfLimits(policy, resources) === undefined) return policy;
  const types = isWrong ? BOTH : typesOf(policy.spec);
  const closed = { types: [...types], ingress: [DENY_ALL], egress: [DENY_ALL] };
  return policy.kind === "NetworkPolicy"
    ? { ...policy, spec: { ...policy.spec, ...closed } }
    : { ...policy, spec: { ...policy.spec, ...closed } };
}

/** Why the policy cannot be carried out; `undefined` if it can. */
export function problemOf(policy: AnyPolicy, resources: PolicyResources): string | undefined {
  return problemOfMeaning(policy, resources) ?? problemOfLimits(policy, resources);
}

/** By namespace and name. */
type NamespaceProblems = ReadonlyMap<string, ReadonlyMap<string, string>>;
const foundProblems = new WeakMap<PolicyResources, NamespaceProblems>();

function problemOfLimits({ kind, metadata }: AnyPolicy, resources: PolicyResources): string | undefined {
  if (kind !== "NetworkPolicy") return undefined;
  const problems = foundProblems.get(resources) ?? findLimitProblems(resources);
  foundProblems.set(resources, problems);
  return problems.get(metadata.namespace ?? "")?.get(metadata.name);
}

function findLimitProblems(resources: PolicyResources): NamespaceProblems {
  const limits = resources.policyLimits ?? policyLimits(nodeAgentSettings([], ""));
  if (Object.values(limits).every((limit) => limit === Number.POSITIVE_INFINITY)) return new Map();
  const sizes = new Map<string, Map<string, PolicySize>>();
  const policies = new Map<string, NetworkPolicy>();
  for (const policy of resources.networkPolicies) {
    if (problemOfMeaning(policy, resources) !== undefined) continue;
    const { name, namespace = "" } = policy.metadata;
    const others = sizes.get(namespace) ?? new Map<string, PolicySize>();
    sizes.set(namespace, others.set(name, sizeOfPolicy(policy.spec)));
    policies.set(`${namespace}/${name}`, policy);
  }
  const most = mostAddresses(resources);
  const mayExceed = sizes.values().some((each) => {
    const counts = Array.from(each.values(), ({ lists, written = 0 }) => lists.size * most + written);
    return counts.reduce((sum, count) => sum + count, 0) > limits.addresses;
  });
  const counted = mayExceed ? addressesOfPolicies(resources) : () => new Map();
  const addressesOf = (namespace: string) => (name: string) => {
    const policy = policies.get(`${namespace}/${name}`);
    return policy === undefined ? new Map() : counted(policy);
  };
  return new Map(
    Array.from(sizes, ([namespace, each]) => [namespace, problemsOfSizes(each, limits, addressesOf(namespace))]),
  );
}

/** By whether there are Services. Whoever judges many packets asks for the same policies again and again. */
const foundMeanings = {
  true: new WeakMap<AnyPolicy, MeaningProblem>(),
  false: new WeakMap<AnyPolicy, MeaningProblem>(),
};
type MeaningProblem = { readonly problem: string | undefined };

function problemOfMeaning(policy: AnyPolicy, resources: PolicyResources): string | undefined {
  const found = foundMeanings[`${resources.serviceEndpoints !== undefined}`];
  const known = found.get(policy) ?? { problem: findMeaningProblem(policy, resources) };
  found.set(policy, known);
  return known.problem;
}

function findMeaningProblem({ metadata, spec }: AnyPolicy, resources: PolicyResources): string | undefined {
  const rules = typesOf(spec).flatMap((type) => spec[type === "Ingress" ? "ingress" : "egress"] ?? []);
  const isBeforeRouting = "doNotTrack" in spec && (spec.doNotTrack || spec.preDNAT);
  const withHttp = typesOf(spec).includes("Ingress") && !isBeforeRouting ? (spec.ingress ?? []) : [];
  return problemOfHttp(rules, withHttp) ?? problemOfRules(rules, metadata.namespace, resources);
}

/** `allowed`: the rules that may have it. */
function problemOfHttp(rules: readonly PolicyRule[], allowed: readonly PolicyRule[]): string | undefined {
  const wrong = rules.some(
    (rule) =>
      rule.http !== undefined &&
      (!allowed.includes(rule) ||
        rule.action !== "Allow" ||
        !(rule.protocol === undefined || isProtocol(rule.protocol, TCP)) ||
        isProtocol(rule.notProtocol, TCP)),
  );
  return wrong ? 'a rule has "http" that is not an ingress rule for TCP with action Allow' : undefined;
}

/** What a profile says about the endpoint. One that cannot be carried out allows nothing. */
export function profileRules(
  profile: Profile,
  { kind }: AnyEndpoint,
  direction: Direction,
  resources: PolicyResources,
): readonly PolicyRule[] {
  const { ingress = [], egress = [] } = kind === "WorkloadEndpoint" ? workloadProfileSpec(profile) : profile.spec;
  const rules = [...ingress, ...egress];
  const problem = problemOfHttp(rules, []) ?? problemOfRules(rules, undefined, resources);
  return problem === undefined ? { ingress, egress }[direction] : [];
}

function problemOfRules(
  rules: readonly PolicyRule[],
  namespace: string | undefined,
  resources: PolicyResources,
): string | undefined {
  return rules
    .map((rule) => problemOfRule(rule, namespace) ?? problemOfServices(rule, resources))
    .find((problem) => problem !== undefined);
}

function problemOfRule(rule: PolicyRule, namespace: string | undefined): string | undefined {
  const peers = [rule.source ?? {}, rule.destination ?? {}];
  const hasPorts = peers.some(({ ports = [], notPorts = [] }) => ports.length + notPorts.length > 0);
  const isWithoutNamespace = peers.some(
    ({ services }) => services !== undefined && (services.namespace ?? namespace) === undefined,
  );
  const unknown = unknownCriterion(rule);
  if (unknown !== undefined) return `a rule has the unknown field "${unknown}"`;
  const isHttp = rule.http !== undefined && rule.protocol === undefined;
  if (hasPorts && !isHttp && !isProtocol(rule.protocol, WITH_PORTS))
    return "a rule has ports without a protocol that has ports";
  if ((rule.icmp ?? rule.notICMP) !== undefined && !isProtocol(rule.protocol, ICMP)) {
    return "a rule has ICMP types without the protocol ICMP or ICMPv6";
  }
  if ([rule.icmp, rule.notICMP].some((match) => match !== undefined && match.type === undefined)) {
    return "a rule has an ICMP code without a type";
  }
  return isWithoutNamespace ? "a rule has a service without a namespace" : undefined;
}

const TCP: readonly unknown[] = [6, "tcp"];
const WITH_PORTS: readonly unknown[] = [6, 17, 132, "tcp", "udp", "sctp"];
const ICMP: readonly unknown[] = [1, 58, "icmp", "icmpv6"];

function isProtocol(protocol: PolicyRule["protocol"], wanted: readonly unknown[]): boolean {
  return wanted.includes(typeof protocol === "string" ? protocol.toLowerCase() : protocol);
}

function problemOfServices(
  { source, destination }: PolicyRule,
  { serviceEndpoints }: PolicyResources,
): string | undefined {
  if (serviceEndpoints !== undefined || (source?.services ?? destination?.services) === undefined) return undefined;
  return "a rule matches a service, and the datastore does not contain services";
}
