/** IPReservation: addresses that are never assigned automatically. */
import * as v from "valibot";
import { PRODUCT_API } from "../identity.ts";
import { type Prefix, parsePrefixOrAddress } from "../ip/prefix.ts";
import { prefixOrAddressField } from "./fields.ts";
import { defineResource, type Resource } from "./resource.ts";

const specSchema = v.object({
  reservedCIDRs: v.optional(v.array(prefixOrAddressField), []),
});

export type IPReservation = Resource<"IPReservation", Readonly<v.InferOutput<typeof specSchema>>>;

export const ipReservation = defineResource({
  kind: "IPReservation",
  api: PRODUCT_API,
  namespaced: false,
  spec: specSchema,
  complete: (spec): IPReservation["spec"] => spec,
});

/** All prefixes that the reservations cover. */
export function reservedPrefixes(reservations: readonly IPReservation[]): readonly Prefix[] {
  return reservations
    .flatMap((reservation) => reservation.spec.reservedCIDRs)
    .map((text) => parsePrefixOrAddress(text))
    .filter((prefix) => prefix !== undefined);
}
