/** What the annotations of a pod mean for IPAM. Pure. */
import type { AnnotatedRequests } from "../ipam/address-requests.ts";
import type { AnnotationRequests } from "./annotations.ts";

export function annotatedRequests({ addresses, families, list, pools }: AnnotationRequests): AnnotatedRequests {
  const asked: AnnotatedRequests = {
    pools,
    ...(families === undefined ? {} : { families }),
    ...(list === undefined ? {} : { list: { name: list.value, place: list.place } }),
  };
  if (addresses === undefined) return asked;
  const { value, place } = addresses;
  return { ...asked, addresses: value.map((address) => ({ address, place })) };
}
