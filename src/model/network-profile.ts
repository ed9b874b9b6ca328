/**
 * The profile of a network: written by the first ADD of a container without a pod, and never changed by the plugin.
 *
 * Its ingress rule admits the network itself. Nobody has asked for that rule, so policy does not close a container by it:
 * as long as the record is as ADD wrote it, a container that no policy selects stays open, as a pod of a namespace does.
 * An edited record counts as it is written, and so does one that somebody wrote himself with the same rules: the admin tool
 * marks it. Pure, and without schemas: the plugin imports it.
 */
import { identity } from "../identity.ts";
import type { Profile } from "./profile.ts";

/** What ADD writes for containers that are not pods. */
export function networkProfileSpec(network: string): Profile["spec"] {
  return {
    egress: [{ action: "Allow" }],
    ingress: [{ action: "Allow", source: { selector: `has(${network})` } }],
    labelsToApply: { [network]: "" },
  };
}

/**
 * Of a network that others do not reach: only containers have the label of an orchestrator, so the host and what it publishes
 * for others stay as they are.
 */
export function isolatedProfileSpec(network: string): Profile["spec"] {
  const { ingress = [], ...others } = networkProfileSpec(network);
  const refused = { action: "Deny", source: { selector: `has(${identity.labelPrefix}orchestrator)` } } as const;
  return { ...others, ingress: [...ingress, refused, { action: "Allow" }] };
}

/** Whether the record is one that ADD wrote and nobody edited: neither its rules nor its labels and annotations. */
export function isUneditedNetworkProfile({ metadata, spec }: Profile): boolean {
  const { name, uid: _, creationTimestamp: __, resourceVersion: ___, ...others } = metadata;
  return Object.values(others).every(isEmpty) && Bun.deepEquals(spec, networkProfileSpec(name));
}

/** Of a profile that somebody wrote with the rules that ADD writes. The admin tool adds it. */
const WRITTEN_ANNOTATION = `${identity.labelPrefix}profile-rules`;

/** The same profile, so that its rules count although they are those that ADD writes. */
export function withCountingRules<P extends Pick<Profile, "metadata">>(profile: P): P {
  const annotations = { ...profile.metadata.annotations, [WRITTEN_ANNOTATION]: "as-written" };
  return { ...profile, metadata: { ...profile.metadata, annotations } };
}

function isEmpty(value: unknown): boolean {
  return value === undefined || (typeof value === "object" && value !== null && Object.keys(value).length === 0);
}

/** What the profile says about endpoints of workloads. Host endpoints that name it have chosen its rules. */
export function workloadProfileSpec(profile: Profile): Profile["spec"] {
  return isUneditedNetworkProfile(profile) ? { ...profile.spec, ingress: [{ action: "Allow" }] } : profile.spec;
}
