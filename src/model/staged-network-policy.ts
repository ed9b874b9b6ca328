/** StagedNetworkPolicy: a NetworkPolicy that is tried, not enforced. */
import * as v from "valibot";
import { PRODUCT_API } from "../identity.ts";
import { findEmptyCriteria } from "./empty-criteria.ts";
import { checkPolicy, policyFields } from "./policy-spec.ts";
import { defineResource, type Resource } from "./resource.ts";
import { checkDeletion, stagedActionField } from "./staged-action.ts";

const specSchema = v.object({ stagedAction: stagedActionField, ...policyFields });

export type StagedNetworkPolicySpec = Readonly<v.InferOutput<typeof specSchema>>;
export type StagedNetworkPolicy = Resource<"StagedNetworkPolicy", StagedNetworkPolicySpec>;

export const stagedNetworkPolicy = defineResource({
  kind: "StagedNetworkPolicy",
  api: PRODUCT_API,
  namespaced: true,
  spec: v.optional(specSchema, {}),
  findEmpty: findEmptyCriteria,
  complete: (spec): StagedNetworkPolicySpec => spec,
  check: ({ stagedAction, ...spec }, metadata) => [
    ...(stagedAction === "Delete" ? checkDeletion(spec, ["tier"]) : []),
    ...checkPolicy(spec, metadata, "namespaced"),
  ],
});
