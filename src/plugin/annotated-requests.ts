/** What the annotations of a pod mean for IPAM. Pure. */
import type { AnnotatedRequests } from "../ipam/address-requests.ts";
import type { AnnotationRequests } from "./annotations.ts";

export function annotatedRequests({ addresses, pools }: AnnotationRequests): AnnotatedRequests {
  if (addresses === undefined) return { pools };
  const { value, place } = addresses;
  return { pools, addresses: value.map((address) => ({ address, place })) };
}
