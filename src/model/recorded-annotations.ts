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

export function recordedAnnotation(name: (typeof RECORDED_ANNOTATIONS)[number]): string {
  return `${identity.annotationPrefix}${name}`;
}

/**
 * Annotations with which a pod chooses addresses that IPAM does not check. Each is a key of the list that says which pods may
 * (docs/admission.md).
 */
export const CHOSEN_ANNOTATIONS = ["ipAddrsNoIpam", "floatingIPs", "allowedSourcePrefixes"] as const;
