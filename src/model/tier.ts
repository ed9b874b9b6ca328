/** Tier: a group of policies that is evaluated before or after other groups. */
import * as v from "valibot";
import { PRODUCT_API } from "../identity.ts";
import { BUILT_IN_TIERS, DEFAULT_TIER } from "./built-in-tiers.ts";
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
    const builtIn = BUILT_IN_TIERS.get(name);
    if (builtIn === undefined || defaultAction === builtIn.defaultAction) return [];
    return [{ path: "spec.defaultAction", value: defaultAction, message: builtInActionMessage(name) }];
  },
});

/** The rules of the CRD have the same ones. */
export function builtInActionMessage(name: string): string {
  return `is not allowed for the tier "${name}"; use ${BUILT_IN_TIERS.get(name)?.defaultAction}`;
}
