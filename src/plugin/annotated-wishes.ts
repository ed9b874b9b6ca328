/** What the annotations of a pod mean for IPAM. Pure. */
import type { AnnotatedWishes } from "../ipam/wishes.ts";
import type { AnnotationRequests } from "./annotations.ts";

export function wishesIn({ addresses, pools }: AnnotationRequests): AnnotatedWishes {
  if (addresses === undefined) return { pools };
  const { value, place } = addresses;
  return { pools, addresses: value.map((address) => ({ address, place })) };
}
