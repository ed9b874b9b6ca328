/** The Installation and its overlay, and the datastore that they name. Pure. */
import { DEFAULT_NAME, OVERLAY_NAME } from "../model/installation/installation.ts";
import { NETWORK_FIELD } from "../model/installation/names.ts";
import type { Problem } from "../model/problem.ts";
import { isObject } from "../model/shape.ts";
import { mergedSpec } from "../release/installation/complete.ts";
import type { InstallationDatastore } from "../release/installation/effective-installation.ts";
import { type LiveObject, listAt, memberAt, textAt } from "../release/live-object.ts";
import { type FollowedSnapshot, objectNamed } from "./followed-objects.ts";

export interface Declared {
  readonly default: LiveObject;
  readonly overlay?: LiveObject;
}

export function declaredIn(snapshot: FollowedSnapshot, installation: LiveObject): Declared {
  const overlay = objectNamed(snapshot, "installations", { name: OVERLAY_NAME });
  return overlay === undefined ? { default: installation } : { default: installation, overlay };
}

/**
 * What a removal works with, best first: what was installed last, because the overlay may be gone already or the Installation
 * not valid any more; then what is declared now. The network is left out of the former: a removal does not need it, and it may
 * name pools that are gone.
 */
export function installedOf(declared: Declared): readonly Declared[] {
  const computed = memberAt(declared.default, "status", "computed");
  if (!isObject(computed)) return [declared];
  const { [NETWORK_FIELD]: _, ...spec } = computed;
  return [{ default: { ...declared.default, spec } }, declared];
}

/** Needed before the rest can be completed, because the pools are in it. What is not valid is refused with the rest. */
export function datastoreOf(declared: Declared): InstallationDatastore {
  const { datastore } = mergedSpec(declared);
  const endpoints = listAt(datastore, "etcd", "endpoints");
  const discoveryDomain = textAt(datastore, "etcd", "discoverySrv");
  const hasServers = endpoints.length > 0 || discoveryDomain !== "";
  if (textAt(datastore, "type") !== "Etcd" || !hasServers) return { type: "Kubernetes" };
  const secretName = textAt(datastore, "etcd", "secretName");
  return {
    type: "Etcd",
    endpoints: endpoints.join(","),
    ...(discoveryDomain === "" ? {} : { discoveryDomain }),
    ...(secretName === "" ? {} : { secretName }),
  };
}

/** The definition of the resource refuses a change of the type in one Installation, but not an overlay that has another. */
export function datastoreProblem(declared: Declared): Problem | undefined {
  const installed = textAt(declared.default, "status", "computed", "datastore", "type");
  const type = textAt(mergedSpec(declared)["datastore"], "type") || "Kubernetes";
  if (installed === "" || type === installed) return undefined;
  const setBy = textAt(declared.overlay, "spec", "datastore", "type") === "" ? DEFAULT_NAME : OVERLAY_NAME;
  const remedy = setBy === OVERLAY_NAME ? "remove it from" : `set it to ${installed} in`;
  const message = `cannot change, because addresses in use would be lost: the installed type is ${installed}; ${remedy} Installation "${setBy}", or delete the Installations and create them again`;
  return { path: "spec.datastore.type", value: type, message };
}
