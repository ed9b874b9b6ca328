import { identity } from "../identity.ts";

/**
 * Annotations of a pod in which the plugin records what it assigned, if the orchestrator's API is the datastore: whoever
 * can write one decides what other programs believe about the pod (`deploy/admission/` protects all of them).
 */
export const RECORDED_ANNOTATIONS = [
  "podIP",
  "podIPs",
  "containerID",
  "network",
  "ipNATs",
  "allowSpoofedSourcePrefixes",
] as const;

/**
 * Of each of them: an ADD records no more values, and what a user writes beyond them is not read, so that it does not fill the
 * memory of all agents.
 */
export const MOST_RECORDED_VALUES = 32;

/** In a datastore of its own, which users cannot write, an endpoint has as many values as an ADD records. */
export function mostRecordedValues(datastore: "orchestrator" | "etcd" | "embedded"): number {
  return datastore === "orchestrator" ? MOST_RECORDED_VALUES : Number.POSITIVE_INFINITY;
}

export function recordedAnnotation(name: (typeof RECORDED_ANNOTATIONS)[number]): string {
  return `${identity.annotationPrefix}${name}`;
}

/**
 * Annotations with which a pod chooses addresses that IPAM does not check. Each is a key of the list that says which pods may
 * (docs/admission.md).
 */
export const CHOSEN_ANNOTATIONS = ["ipAddrsNoIpam", "floatingIPs", "allowedSourcePrefixes"] as const;
