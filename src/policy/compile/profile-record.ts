/** A profile as the compiler keeps it: the labels that endpoints inherit, and its rules with everything resolved. Pure. */
import { workloadProfileSpec } from "../../model/network-profile.ts";
import type { Profile } from "../../model/profile.ts";
import { effectiveRule, type RuleOwner, UnsupportedRule } from "../effective-policy.ts";
import type { Direction, EffectiveRule } from "../effective-rule.ts";
import { EVERYTHING } from "../effective-selector.ts";

/** A profile can say other things about workloads than about hosts (`network-profile.ts`). */
export type EndpointKind = "workload" | "host";

type DirectionRules = Readonly<Record<Direction, readonly EffectiveRule[]>>;

export interface ProfileRecord {
  readonly labels: Readonly<Record<string, string>>;
  readonly rules: Readonly<Record<EndpointKind, DirectionRules>>;
  /** Why it allows nothing instead of what it says. */
  readonly problem?: string;
}

const NO_RULES: DirectionRules = { ingress: [], egress: [] };

export function profileRecord(profile: Profile, { hasServices }: Pick<RuleOwner, "hasServices">): ProfileRecord {
  const labels = profile.spec.labelsToApply ?? {};
  const resolve = (spec: Profile["spec"], direction: Direction) =>
    (spec[direction] ?? [])
      .map((rule) => effectiveRule(rule, direction, { selector: EVERYTHING, hasServices, withoutHttp: "in a profile" }))
      // Pass leaves a tier, and a profile is in none: nothing is left that could allow the packet.
      .map((rule) => (rule.action === "Pass" ? { ...rule, action: "Deny" as const } : rule));
  const resolveBoth = (spec: Profile["spec"]): DirectionRules => ({
    ingress: resolve(spec, "ingress"),
    egress: resolve(spec, "egress"),
  });
  try {
    const rules = { workload: resolveBoth(workloadProfileSpec(profile)), host: resolveBoth(profile.spec) };
    return { labels, rules };
  } catch (failure) {
    if (!(failure instanceof UnsupportedRule)) throw failure;
    return { labels, rules: { workload: NO_RULES, host: NO_RULES }, problem: failure.message };
  }
}
