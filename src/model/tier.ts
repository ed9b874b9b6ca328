/** Tier: a group of policies that is evaluated before or after other groups. */
import * as v from "valibot";
import { PRODUCT_API } from "../identity.ts";
import { DEFAULT_TIER } from "./default-tier.ts";
import type { Problem } from "./problem.ts";
import { defineResource, type Resource } from "./resource.ts";

export { DEFAULT_TIER };

/** Lower numbers are evaluated first, those without one last. */
export const orderField = v.number();

const specSchema = v.object({
  order: v.exactOptional(orderField),
  defaultAction: v.optional(v.picklist(["Deny", "Pass"]), "Deny"),
});

export type TierSpec = Readonly<v.InferOutput<typeof specSchema>>;
export type Tier = Resource<"Tier", TierSpec>;

export const tier = defineResource({
  kind: "Tier",
  api: PRODUCT_API,
  namespaced: false,
  spec: v.optional(specSchema, {}),
  complete: (spec): TierSpec => spec,
  check: ({ defaultAction }, { name }): readonly Problem[] => {
    if (name !== DEFAULT_TIER || defaultAction === "Deny") return [];
    return [{ path: "spec.defaultAction", value: defaultAction, message: DEFAULT_TIER_DENIES }];
  },
});

/** The rule of the CRD has the same one. */
export const DEFAULT_TIER_DENIES = `is not allowed for the tier "${DEFAULT_TIER}"; use Deny`;
