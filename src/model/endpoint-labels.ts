/** Separate from the endpoint itself: the plugin writes endpoints without their schema. */
import { identity } from "../identity.ts";
import { formatAddress, parseAddress, unmapAddress } from "../ip/address.ts";

/** The network of an endpoint, so that a GC only removes endpoints of its own network. */
export const NETWORK_ANNOTATION = `${identity.labelPrefix}network`;

/** Addresses of an endpoint that IPAM does not record, as a JSON array: the same annotation as on the pod. */
export const WITHOUT_IPAM_ANNOTATION = `${identity.annotationPrefix}ipAddrsNoIpam`;

/** The MAC that an annotation of the pod requests, which takes precedence over the runtime's. */
export const MAC_ANNOTATION = `${identity.annotationPrefix}hwAddr`;

/** The addresses in `WITHOUT_IPAM_ANNOTATION`, in canonical form. */
export function addressesWithoutIpam(annotation: string | undefined): ReadonlySet<string> {
  if (annotation === undefined) return NONE;
  const listed = annotation.match(/[^[\]",\s]+/g) ?? [];
  return new Set(
    listed.flatMap((text) => parseAddress(text) ?? []).map((address) => formatAddress(unmapAddress(address))),
  );
}

const NONE: ReadonlySet<string> = new Set();

/** The labels of a stored endpoint: its own, and those of its namespace and orchestrator. */
export function endpointLabels(
  own: Readonly<Record<string, string>>,
  place: { readonly namespace: string; readonly orchestrator: string },
): Readonly<Record<string, string>> {
  const { labelPrefix } = identity;
  return { ...own, [`${labelPrefix}namespace`]: place.namespace, [`${labelPrefix}orchestrator`]: place.orchestrator };
}
