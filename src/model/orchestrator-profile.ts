/**
 * The profiles of namespaces and service accounts. Pure.
 *
 *   kns.NAMESPACE            allows everything; its endpoints inherit the labels of the namespace
 *   ksa.NAMESPACE.ACCOUNT    no rules; its endpoints inherit the labels of the service account
 */
import { API_VERSION, identity } from "../identity.ts";
import { derivedUid } from "./derived-uid.ts";
import type { Profile } from "./profile.ts";

export const NAMESPACE_PROFILE = "kns.";
export const ACCOUNT_PROFILE = "ksa.";

/** The part of the orchestrator's object that is used here. */
export interface LabelledObject {
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly [field: string]: unknown;
  };
}

export function namespaceProfile(namespace: LabelledObject): Profile {
  return profileOf(namespace, {
    name: `${NAMESPACE_PROFILE}${namespace.metadata.name}`,
    labelPrefix: "pcns.",
    rules: { ingress: [{ action: "Allow" }], egress: [{ action: "Allow" }] },
  });
}

export function accountProfile(account: LabelledObject): Profile {
  const { name, namespace } = account.metadata;
  return profileOf(account, { name: `${ACCOUNT_PROFILE}${namespace}.${name}`, labelPrefix: "pcsa.", rules: {} });
}

function profileOf(
  { metadata }: LabelledObject,
  {
    name,
    labelPrefix,
    rules,
  }: { readonly name: string; readonly labelPrefix: string; readonly rules: Profile["spec"] },
): Profile {
  const labels = { ...metadata.labels, [`${identity.labelPrefix}name`]: metadata.name };
  const { uid, creationTimestamp } = metadata;
  return {
    apiVersion: API_VERSION,
    kind: "Profile",
    metadata: {
      name,
      ...(uid === undefined ? {} : { uid: derivedUid(uid) }),
      ...(typeof creationTimestamp === "string" ? { creationTimestamp } : {}),
    },
    spec: {
      ...rules,
      labelsToApply: Object.fromEntries(
        Object.entries(labels).map(([label, value]) => [`${labelPrefix}${label}`, value]),
      ),
    },
  };
}
