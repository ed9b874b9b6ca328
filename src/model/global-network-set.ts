/** GlobalNetworkSet: addresses outside the cluster that rules of any namespace select by labels. */
import * as v from "valibot";
import { PRODUCT_API } from "../identity.ts";
import { type NetworkSetSpec, networkSetSchema } from "./network-set.ts";
import { defineResource, type Resource } from "./resource.ts";

export type GlobalNetworkSet = Resource<"GlobalNetworkSet", NetworkSetSpec>;

export const globalNetworkSet = defineResource({
  kind: "GlobalNetworkSet",
  api: PRODUCT_API,
  namespaced: false,
  spec: v.optional(networkSetSchema, {}),
  complete: (spec): NetworkSetSpec => spec,
});
