/**
 * IPAddressList: addresses that pods ask for by the name of the list, in the order in which they are assigned, and the
 * namespaces whose pods may. It reserves nothing: what keeps others from its addresses is an IPReservation.
 */
import * as v from "valibot";
import { PRODUCT_API } from "../identity.ts";
import { selectorField, singleAddressField } from "./fields.ts";
import type { Problem } from "./problem.ts";
import { defineResource, type Resource } from "./resource.ts";

export const MOST_LISTED = 1024;

/** The rules of the CRD have the same ones. */
export const LIST_MESSAGES = {
  empty: "has no addresses; list at least one",
  repeated: "is in the list already; remove it",
  tooMany: `has more than ${MOST_LISTED} addresses; use several lists`,
} as const;

const specSchema = v.object({
  addresses: v.pipe(
    v.array(singleAddressField),
    v.minLength(1, LIST_MESSAGES.empty),
    v.maxLength(MOST_LISTED, LIST_MESSAGES.tooMany),
  ),
  namespaceSelector: v.optional(selectorField, "all()"),
});

export type IPAddressList = Resource<"IPAddressList", Readonly<v.InferOutput<typeof specSchema>>>;

export const ipAddressList = defineResource({
  kind: "IPAddressList",
  api: PRODUCT_API,
  namespaced: false,
  spec: specSchema,
  complete: (spec): IPAddressList["spec"] => ({
    ...spec,
    namespaceSelector: spec.namespaceSelector.trim() === "" ? "all()" : spec.namespaceSelector,
  }),
  check: ({ addresses }) => repetitions(addresses),
});

/** Each address has one spelling only. */
function repetitions(addresses: readonly string[]): readonly Problem[] {
  const seen = new Set<string>();
  return addresses.flatMap((value, index) => {
    if (seen.has(value)) return [{ path: `spec.addresses[${index}]`, value, message: LIST_MESSAGES.repeated }];
    seen.add(value);
    return [];
  });
}
