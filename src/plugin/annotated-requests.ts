/** What the annotations of a pod mean for IPAM. Pure. */
import type { AnnotatedRequests } from "../ipam/address-requests.ts";
import type { AnnotationRequests } from "./annotations.ts";

export function annotatedRequests({ addresses, families, pools }: AnnotationRequests): AnnotatedRequests {
  const asked = { pools, ...(families === undefined ? {} : { families }) };
  if (addresses === undefined) return asked;
  const { value, place } = addresses;
  return { ...asked, addresses: value.map((address) => ({ address, place })) };
}
