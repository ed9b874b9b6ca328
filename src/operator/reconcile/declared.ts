/** The Installation and its overlay, and the datastore that they name. Pure. */
import type { InstallationDatastore } from "../effective-installation.ts";
import { type FollowedSnapshot, objectNamed } from "./followed-objects.ts";
import { type LiveObject, listAt, memberAt, textAt } from "./live-object.ts";
import { OVERLAY } from "./names.ts";

export interface Declared {
  readonly default: LiveObject;
  readonly overlay?: LiveObject;
}

export function declaredIn(snapshot: FollowedSnapshot, installation: LiveObject): Declared {
  const overlay = objectNamed(snapshot, "installations", { name: OVERLAY });
  return overlay === undefined ? { default: installation } : { default: installation, overlay };
}

/** Needed before the rest can be completed, because the pools are in it. What is not valid is refused with the rest. */
export function datastoreOf({ default: base, overlay }: Declared): InstallationDatastore {
  const holder = memberAt(overlay, "spec", "datastore") === undefined ? base : overlay;
  const endpoints = listAt(holder, "spec", "datastore", "etcd", "endpoints");
  if (textAt(holder, "spec", "datastore", "type") !== "Etcd" || endpoints.length === 0) return { type: "Kubernetes" };
  const secretName = textAt(holder, "spec", "datastore", "etcd", "secretName");
  return { type: "Etcd", endpoints: endpoints.join(","), ...(secretName === "" ? {} : { secretName }) };
}
