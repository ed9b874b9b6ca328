/** Profile: labels and rules that many endpoints inherit, such as those of their namespace. */
import * as v from "valibot";
import { identity, PRODUCT_API } from "../identity.ts";
import { findEmptyCriteria } from "./empty-criteria.ts";
import { checkLabels } from "./metadata.ts";
import { nameMap } from "./name-map.ts";
import { ruleSchema } from "./policy-rule.ts";
import { checkRules } from "./policy-rules-check.ts";
import type { Problem } from "./problem.ts";
import { defineResource, type Resource } from "./resource.ts";

/** The built-in profile of `default-allow-profile.ts`. */
export const DEFAULT_ALLOW_PROFILE = `${identity.product}-default-allow`;

const specSchema = v.object({
  ingress: v.exactOptional(v.array(ruleSchema)),
  egress: v.exactOptional(v.array(ruleSchema)),
  labelsToApply: v.exactOptional(nameMap(v.string())),
});

export type Profile = Resource<"Profile", Readonly<v.InferOutput<typeof specSchema>>>;

export const profile = defineResource({
  kind: "Profile",
  api: PRODUCT_API,
  namespaced: false,
  spec: v.optional(specSchema, {}),
  findEmpty: findEmptyCriteria,
  complete: (spec): Profile["spec"] => spec,
  check: ({ labelsToApply = {}, ingress, egress }, { name }) => [
    ...checkName(name),
    ...checkRules(ingress, { path: "spec.ingress", owner: "profile", direction: "ingress" }),
    ...checkRules(egress, { path: "spec.egress", owner: "profile", direction: "egress" }),
    ...checkLabels(labelsToApply, "spec.labelsToApply"),
  ],
});

function checkName(name: string): readonly Problem[] {
  if (name !== DEFAULT_ALLOW_PROFILE) return [];
  return [{ path: "metadata.name", value: name, message: "is the name of a built-in profile; use another one" }];
}
