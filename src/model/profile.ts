/** Profile: labels and rules that many endpoints inherit, such as those of their namespace. */
import * as v from "valibot";
import { PRODUCT_API } from "../identity.ts";
import { checkLabels } from "./metadata.ts";
import { nameMap } from "./name-map.ts";
import { ruleSchema } from "./policy-rule.ts";
import { checkRules } from "./policy-rules-check.ts";
import { defineResource, type Resource } from "./resource.ts";

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
  complete: (spec): Profile["spec"] => spec,
  check: ({ labelsToApply = {}, ingress, egress }) => [
    ...checkRules(ingress, { path: "spec.ingress", owner: "profile" }),
    ...checkRules(egress, { path: "spec.egress", owner: "profile" }),
    ...checkLabels(labelsToApply, "spec.labelsToApply"),
  ],
});
