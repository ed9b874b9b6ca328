/** NetworkPolicy: rules for the endpoints of one namespace. */
import * as v from "valibot";
import { PRODUCT_API } from "../identity.ts";
import { findEmptyCriteria } from "./empty-criteria.ts";
import { checkPolicy, policyFields } from "./policy-spec.ts";
import { defineResource, type Resource } from "./resource.ts";

const specSchema = v.object(policyFields);

export type NetworkPolicySpec = Readonly<v.InferOutput<typeof specSchema>>;
export type NetworkPolicy = Resource<"NetworkPolicy", NetworkPolicySpec>;

export const networkPolicy = defineResource({
  kind: "NetworkPolicy",
  api: PRODUCT_API,
  namespaced: true,
  spec: v.optional(specSchema, {}),
  findEmpty: findEmptyCriteria,
  complete: (spec): NetworkPolicySpec => spec,
  check: (spec, metadata) => checkPolicy(spec, metadata, "namespaced"),
});
