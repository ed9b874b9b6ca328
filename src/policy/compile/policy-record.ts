/** A policy as the compiler keeps it: what it selects, when it is evaluated, and its rules with everything resolved. */
import type { GlobalNetworkPolicy } from "../../model/global-network-policy.ts";
import type { NetworkPolicy } from "../../model/network-policy.ts";
import { NOT_CONVERTED_ANNOTATION } from "../../model/orchestrator-policy.ts";
import type { PolicyRule } from "../../model/policy-rule.ts";
import { typesOf } from "../../model/policy-spec.ts";
import { effectiveRule, type RuleOwner, UnsupportedRule } from "../effective-policy.ts";
import type { Direction, EffectivePeer, EffectiveRule } from "../effective-rule.ts";
import { policySelector, type SelectorText } from "../effective-selector.ts";
import { type PolicySize, sizeOfPolicy } from "../policy-size.ts";

/** When the rules are evaluated. All but `normal` concern host endpoints only. */
export type PolicyStage = "normal" | "preDNAT" | "untracked";

/** Of unreadable policies, before every tier: no tier can have this name. */
export const FIRST_TIER = "unreadable policies";

export interface PolicyRecord {
  readonly key: string;
  /** As people write it: `NAMESPACE/NAME`, or `NAME` of a global policy. */
  readonly title: string;
  readonly selector: SelectorText;
  readonly tier: string;
  readonly order: number;
  readonly stage: PolicyStage;
  /** Also for traffic that a host endpoint forwards. */
  readonly appliesOnForward: boolean;
  /** The directions that it isolates, with their rules. */
  readonly rules: Readonly<Partial<Record<Direction, readonly EffectiveRule[]>>>;
  /** Why it denies more than it says: everything, or what a converted policy cannot express. */
  readonly problem?: string;
  /** Of a policy of a namespace that can be carried out: counts for the limits. */
  readonly size?: PolicySize;
}

export function policyRecord(
  key: string,
  policy: NetworkPolicy | GlobalNetworkPolicy,
  { hasServices }: Pick<RuleOwner, "hasServices">,
): PolicyRecord {
  const { spec } = policy;
  const { name, namespace } = policy.metadata;
  const selector = policySelector({ ...spec, namespace });
  const base = {
    key,
    title: namespace === undefined ? name : `${namespace}/${name}`,
    selector,
    tier: spec.tier,
    order: spec.order ?? Number.POSITIVE_INFINITY,
    ...hostOptions(policy),
  };
  const size = namespace === undefined ? undefined : sizeOfPolicy(spec);
  const withoutHttp = base.stage === "normal" ? undefined : "in a policy with doNotTrack or preDNAT";
  const directions = typesOf(spec).map((type): Direction => (type === "Ingress" ? "ingress" : "egress"));
  const resolve = (rules: readonly PolicyRule[] = [], direction: Direction) =>
    rules.map((rule) => effectiveRule(rule, direction, { namespace, selector, hasServices, withoutHttp }));
  try {
    const rules = Object.fromEntries(directions.map((direction) => [direction, resolve(spec[direction], direction)]));
    const problem = policy.metadata.annotations?.[NOT_CONVERTED_ANNOTATION];
    return { ...base, rules, ...(problem === undefined ? {} : { problem }), ...(size === undefined ? {} : { size }) };
  } catch (failure) {
    if (!(failure instanceof UnsupportedRule)) throw failure;
    // In both directions: nobody knows what else its author meant.
    return { ...base, rules: { ingress: [DENY_ALL], egress: [DENY_ALL] }, problem: failure.message };
  }
}

/** A policy beyond a limit denies everything in the directions that it isolates. */
export function closedPolicy({ size: _, ...policy }: PolicyRecord, problem: string): PolicyRecord {
  const { ingress, egress } = policy.rules;
  const rules = { ...(ingress && { ingress: [DENY_ALL] }), ...(egress && { egress: [DENY_ALL] }) };
  return { ...policy, rules, problem };
}

/** Nobody knows what an unreadable policy selects or allows: it denies everything that it could concern. */
export function unreadablePolicy(
  key: string,
  {
    title,
    namespace,
    reason,
  }: { readonly title: string; readonly namespace: string | undefined; readonly reason: string },
): PolicyRecord {
  return {
    key,
    title,
    selector: policySelector({ namespace }),
    tier: FIRST_TIER,
    order: Number.NEGATIVE_INFINITY,
    stage: "normal",
    appliesOnForward: namespace === undefined,
    rules: { ingress: [DENY_ALL], egress: [DENY_ALL] },
    problem: reason,
  };
}

const ANYBODY: EffectivePeer = { notNets: [], members: [], notMembers: [] };
const DENY_ALL: EffectiveRule = { action: "Deny", source: ANYBODY, destination: ANYBODY };

/** Then the same endpoints evaluate it at the same place, by the same chains. */
export function isSameButRules(before: PolicyRecord, now: PolicyRecord): boolean {
  const shape = ({ selector, tier, order, stage, appliesOnForward, rules }: PolicyRecord) => [
    selector,
    tier,
    order,
    stage,
    appliesOnForward,
    ...(["ingress", "egress"] as const).map((direction) => [
      rules[direction]?.some(({ action }) => action === "Pass"),
      rules[direction]?.some(({ http }) => http !== undefined),
    ]),
  ];
  return Bun.deepEquals(shape(before), shape(now));
}

function hostOptions(policy: NetworkPolicy | GlobalNetworkPolicy): Pick<PolicyRecord, "stage" | "appliesOnForward"> {
  if (policy.kind === "NetworkPolicy") return { stage: "normal", appliesOnForward: false };
  const { doNotTrack, preDNAT, applyOnForward } = policy.spec;
  return { stage: doNotTrack ? "untracked" : preDNAT ? "preDNAT" : "normal", appliesOnForward: applyOnForward };
}
