/** What the annotations of a pod mean for IPAM and its pools. Pure. */
import { formatAddress } from "../ip/address.ts";
import { type Prefix, prefixContains } from "../ip/prefix.ts";
import type { AnnotatedWishes } from "../ipam/wishes.ts";
import type { AnnotationRequests } from "./annotations.ts";

export function wishesIn({ addresses, pools }: AnnotationRequests): AnnotatedWishes {
  if (addresses === undefined) return { pools };
  const { value, place } = addresses;
  return { pools, addresses: value.map((address) => ({ address, place })) };
}

/** Only addresses of pools are advertised to other hosts. To be logged at WARNING. */
export function floatingWarnings(
  { floatingAddresses }: AnnotationRequests,
  pools: readonly { readonly cidr: Prefix }[],
): readonly string[] {
  const { value = [], place = "" } = floatingAddresses ?? {};
  return value
    .filter((address) => !pools.some(({ cidr }) => prefixContains(cidr, address)))
    .map((address) => `"${formatAddress(address)}" (${place}) is in no pool: it is not advertised to other hosts`);
}
