/**
 * What is enforced of a policy that cannot be carried out exactly: it applies to the endpoints that it selects, in both
 * directions, and denies everything. Admission refuses such policies; a datastore may hold them all the same. Pure.
 */
import type { PolicyRule } from "../../model/policy-rule.ts";
import { typesOf } from "../../model/policy-spec.ts";
import type { AnyPolicy } from "./resources.ts";

const DENY_ALL: PolicyRule = { action: "Deny" };
const CLOSED = { types: ["Ingress", "Egress"], ingress: [DENY_ALL], egress: [DENY_ALL] } as const;

export function enforcedPolicy(policy: AnyPolicy): AnyPolicy {
  if (problemOf(policy) === undefined) return policy;
  const { types, ingress, egress } = CLOSED;
  const closed = { types: [...types], ingress: [...ingress], egress: [...egress] };
  return policy.kind === "NetworkPolicy"
    ? { ...policy, spec: { ...policy.spec, ...closed } }
    : { ...policy, spec: { ...policy.spec, ...closed } };
}

/** Why the policy cannot be carried out; `undefined` if it can. */
export function problemOf({ metadata, spec }: AnyPolicy): string | undefined {
  const rules = typesOf(spec).flatMap((type) => spec[type === "Ingress" ? "ingress" : "egress"] ?? []);
  return rules.map((rule) => problemOfRule(rule, metadata.namespace)).find((problem) => problem !== undefined);
}

function problemOfRule(rule: PolicyRule, namespace: string | undefined): string | undefined {
  const peers = [rule.source ?? {}, rule.destination ?? {}];
  const hasPorts = peers.some(({ ports = [], notPorts = [] }) => ports.length + notPorts.length > 0);
  const isWithoutNamespace = peers.some(
    ({ services }) => services !== undefined && (services.namespace ?? namespace) === undefined,
  );
  if (rule.http !== undefined) return '"http" is not supported';
  if (hasPorts && rule.protocol === undefined) return "a rule has ports without a protocol";
  if ([rule.icmp, rule.notICMP].some((match) => match !== undefined && match.type === undefined)) {
    return "a rule has an ICMP code without a type";
  }
  return isWithoutNamespace ? "a rule has a service without a namespace" : undefined;
}
