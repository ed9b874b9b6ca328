/** Separate from the endpoint itself: the plugin writes endpoints without their schema. */
import { identity } from "../identity.ts";

/** The network of an endpoint, so that a GC only removes endpoints of its own network. */
export const NETWORK_ANNOTATION = `${identity.labelPrefix}network`;

/** The labels of a stored endpoint: its own, and those of its namespace and orchestrator. */
export function endpointLabels(
  own: Readonly<Record<string, string>>,
  place: { readonly namespace: string; readonly orchestrator: string },
): Readonly<Record<string, string>> {
  const { labelPrefix } = identity;
  return { ...own, [`${labelPrefix}namespace`]: place.namespace, [`${labelPrefix}orchestrator`]: place.orchestrator };
}
