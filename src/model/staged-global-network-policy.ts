/** StagedGlobalNetworkPolicy: a GlobalNetworkPolicy that is tried, not enforced. */
import * as v from "valibot";
import { PRODUCT_API } from "../identity.ts";
import { findEmptyCriteria } from "./empty-criteria.ts";
import { checkGlobalPolicy, globalPolicyFields } from "./global-network-policy.ts";
import { defineResource, type Resource } from "./resource.ts";
import { checkDeletion, stagedActionField } from "./staged-action.ts";

const specSchema = v.object({ stagedAction: stagedActionField, ...globalPolicyFields });

export type StagedGlobalNetworkPolicySpec = Readonly<v.InferOutput<typeof specSchema>>;
export type StagedGlobalNetworkPolicy = Resource<"StagedGlobalNetworkPolicy", StagedGlobalNetworkPolicySpec>;

export const stagedGlobalNetworkPolicy = defineResource({
  kind: "StagedGlobalNetworkPolicy",
  api: PRODUCT_API,
  namespaced: false,
  spec: v.optional(specSchema, {}),
  findEmpty: findEmptyCriteria,
  complete: (spec): StagedGlobalNetworkPolicySpec => spec,
  check: ({ stagedAction, ...spec }, metadata) =>
    // What excludes each other is not asked for twice.
    stagedAction === "Delete" && checkDeletion(spec, ["tier"]).length > 0
      ? checkDeletion(spec, ["tier"])
      : checkGlobalPolicy(spec, metadata),
});
