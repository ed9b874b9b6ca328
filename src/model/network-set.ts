/** NetworkSet: addresses outside the cluster that the rules of one namespace select by labels. */
import * as v from "valibot";
import { PRODUCT_API } from "../identity.ts";
import { packetNetworkField } from "./fields.ts";
import { defineResource, type Resource } from "./resource.ts";

export const networkSetSchema = v.object({ nets: v.optional(v.array(packetNetworkField), []) });

export type NetworkSetSpec = Readonly<v.InferOutput<typeof networkSetSchema>>;
export type NetworkSet = Resource<"NetworkSet", NetworkSetSpec>;

export const networkSet = defineResource({
  kind: "NetworkSet",
  api: PRODUCT_API,
  namespaced: true,
  spec: v.optional(networkSetSchema, {}),
  complete: (spec): NetworkSetSpec => spec,
});
