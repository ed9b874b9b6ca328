/**
 * Whether the datastore may be used, according to its ClusterInformation.
 *
 * A datastore without one is uninitialized. An embedded datastore belongs to
 * this host alone and is initialized by its first ADD; any other is initialized
 * by the administrator.
 */
import type { DatastoreSettings } from "../config/datastore-settings.ts";
import type { Change, Entry, Wanted } from "../datastore/datastore.ts";
import { PluginError } from "../errors.ts";
import { API_VERSION, identity } from "../identity.ts";
import type { ClusterInformation } from "../model/cluster-information.ts";
import { resourceKey } from "../model/keys.ts";
import { readStoredReadiness } from "../model/stored-resources.ts";

const KEY = resourceKey("clusterinformations", { name: "default" });

export const WANTED_CLUSTER: Wanted = { kind: "key", key: KEY };

/** What to do with an uninitialized datastore. */
export type WhenUninitialized =
  | { readonly whenUninitialized: "create"; readonly now: Date; readonly uid: string }
  | { readonly whenUninitialized: "refuse" }
  | { readonly whenUninitialized: "accept" };

/** Throws unless the datastore is ready; returns the change that initializes it, if the caller may do that. */
export function requireReady(
  answer: readonly Entry[] | undefined,
  uninitialized: WhenUninitialized,
): readonly Change[] {
  const entry = answer?.[0];
  if (entry) {
    if (readStoredReadiness(entry.value, entry.key)) return [];
    throw new PluginError(
      "try-again-later",
      "Cannot use the datastore: its ClusterInformation says that it is not ready",
      {
        details: "an upgrade or a migration may be in progress",
      },
    );
  }
  if (uninitialized.whenUninitialized === "create") return [readyChange(uninitialized)];
  if (uninitialized.whenUninitialized === "accept") return [];
  throw new PluginError("try-again-later", "Cannot use the datastore: it is not initialized (no ClusterInformation)", {
    details: `initialize it with: ${identity.adminTool} datastore init`,
  });
}

interface Assigner {
  readonly settings: Pick<DatastoreSettings, "kind">;
  readonly surroundings: { readonly now: () => Date; readonly uuid: () => string };
}

/** Checked before an address is assigned; the same commit initializes an embedded datastore. */
export function readyForAssigning(
  answer: readonly Entry[] | undefined,
  { settings, surroundings: { now, uuid } }: Assigner,
): readonly Change[] {
  if (settings.kind !== "embedded") return requireReady(answer, { whenUninitialized: "refuse" });
  return requireReady(answer, { whenUninitialized: "create", now: now(), uid: uuid() });
}

/** Checked before anything is released. An uninitialized datastore has nothing to release. */
export function requireReadyForReleasing(answer: readonly Entry[] | undefined): void {
  requireReady(answer, { whenUninitialized: "accept" });
}

function readyChange({ now, uid }: { readonly now: Date; readonly uid: string }): Change {
  const ready: ClusterInformation = {
    apiVersion: API_VERSION,
    kind: "ClusterInformation",
    metadata: { name: "default", uid, creationTimestamp: now.toISOString() },
    spec: { clusterGUID: uid.replaceAll("-", ""), datastoreReady: true },
  };
  return { kind: "create", key: KEY, value: JSON.stringify(ready) };
}
