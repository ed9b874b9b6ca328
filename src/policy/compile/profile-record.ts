/** A profile as the compiler keeps it: the labels that endpoints inherit, and its rules with everything resolved. Pure. */
import type { Profile } from "../../model/profile.ts";
import { effectiveRule, type RuleOwner, UnsupportedRule } from "../effective-policy.ts";
import type { Direction, EffectiveRule } from "../effective-rule.ts";
import { EVERYTHING } from "../effective-selector.ts";

export interface ProfileRecord {
  readonly labels: Readonly<Record<string, string>>;
  readonly rules: Readonly<Record<Direction, readonly EffectiveRule[]>>;
  /** Why it allows nothing instead of what it says. */
  readonly problem?: string;
}

export function profileRecord({ spec }: Profile, { hasServices }: Pick<RuleOwner, "hasServices">): ProfileRecord {
  const labels = spec.labelsToApply ?? {};
  const resolve = (direction: Direction) =>
    (spec[direction] ?? [])
      .map((rule) => effectiveRule(rule, direction, { selector: EVERYTHING, hasServices, withoutHttp: "in a profile" }))
      // Pass leaves a tier, and a profile is in none: nothing is left that could allow the packet.
      .map((rule) => (rule.action === "Pass" ? { ...rule, action: "Deny" as const } : rule));
  try {
    return { labels, rules: { ingress: resolve("ingress"), egress: resolve("egress") } };
  } catch (failure) {
    if (!(failure instanceof UnsupportedRule)) throw failure;
    return { labels, rules: { ingress: [], egress: [] }, problem: failure.message };
  }
}
