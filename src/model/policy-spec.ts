/** What NetworkPolicy and GlobalNetworkPolicy have in common: fields, defaults and checks. Pure. */
import * as v from "valibot";
import { selectorField } from "./fields.ts";
import type { Metadata } from "./metadata.ts";
import { ruleSchema } from "./policy-rule.ts";
import { checkRules } from "./policy-rules-check.ts";
import type { Problem } from "./problem.ts";
import { DEFAULT_TIER, orderField } from "./tier.ts";

export const policyFields = {
  tier: v.optional(v.string(), DEFAULT_TIER),
  order: v.exactOptional(orderField),
  selector: v.exactOptional(selectorField),
  serviceAccountSelector: v.exactOptional(selectorField),
  types: v.exactOptional(v.array(v.picklist(["Ingress", "Egress"]))),
  ingress: v.exactOptional(v.array(ruleSchema)),
  egress: v.exactOptional(v.array(ruleSchema)),
};

const commonSchema = v.object(policyFields);
export type CommonPolicySpec = Readonly<v.InferOutput<typeof commonSchema>>;

export type PolicyType = "Ingress" | "Egress";

/** The directions that the policy isolates: without `types`, those that it has rules for, and ingress if it has none. */
export function typesOf({ types, ingress, egress }: CommonPolicySpec): readonly PolicyType[] {
  if (types !== undefined && types.length > 0) return types;
  if (egress === undefined || egress.length === 0) return ["Ingress"];
  return ingress === undefined || ingress.length === 0 ? ["Egress"] : ["Ingress", "Egress"];
}

export function checkPolicy(
  spec: CommonPolicySpec,
  { name }: Metadata,
  owner: "namespaced" | "global",
): readonly Problem[] {
  return [
    ...checkTierName(spec.tier, name),
    ...checkRules(spec.ingress, { path: "spec.ingress", owner, direction: "ingress" }),
    ...checkRules(spec.egress, { path: "spec.egress", owner, direction: "egress" }),
  ];
}

function checkTierName(tier: string, name: string): readonly Problem[] {
  if (tier === DEFAULT_TIER || name.startsWith(`${tier}.`)) return [];
  return [{ path: "metadata.name", value: name, message: tierNameMessage(tier, name) }];
}

/** The rule of the CRD has the same one, with expressions for the values. */
export function tierNameMessage(tier: string, name: string): string {
  return `does not begin with the name of its tier; use "${tier}.${name}"`;
}
