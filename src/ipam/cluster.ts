/**
 * Whether the datastore may be used: what ClusterInformation says.
 *
 * A datastore without one was never made ready. The embedded one belongs to
 * this host alone and is made ready by whoever uses it first; any other is the
 * administrator's.
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

/** What to do with a bare datastore. */
export type WhenBare =
  | { readonly whenBare: "create"; readonly now: Date; readonly uid: string }
  | { readonly whenBare: "refuse" }
  | { readonly whenBare: "accept" };

/** Throws unless the datastore is ready; returns what makes a bare one ready, if that is ours to do. */
export function requireReady(answer: readonly Entry[] | undefined, bare: WhenBare): readonly Change[] {
  const entry = answer?.[0];
  if (entry) {
    if (readStoredReadiness(entry.value, entry.key)) return [];
    throw new PluginError(
      "try-again-later",
      "Cannot use the datastore: its ClusterInformation says that it is not ready",
      {
        details: "an upgrade or a migration may be under way",
      },
    );
  }
  if (bare.whenBare === "create") return [readyChange(bare)];
  if (bare.whenBare === "accept") return [];
  throw new PluginError("try-again-later", "Cannot use the datastore: it holds no ClusterInformation", {
    details: `make it ready with: ${identity.adminTool} datastore init`,
  });
}

interface Assigner {
  readonly settings: Pick<DatastoreSettings, "kind">;
  readonly surroundings: { readonly now: () => Date; readonly uuid: () => string };
}

/** Before an address is assigned; a bare embedded datastore is made ready by the same commit. */
export function readyForAssigning(
  answer: readonly Entry[] | undefined,
  { settings, surroundings: { now, uuid } }: Assigner,
): readonly Change[] {
  if (settings.kind !== "embedded") return requireReady(answer, { whenBare: "refuse" });
  return requireReady(answer, { whenBare: "create", now: now(), uid: uuid() });
}

/** Before anything is released. A bare datastore holds nothing to release. */
export function requireReadyForReleasing(answer: readonly Entry[] | undefined): void {
  requireReady(answer, { whenBare: "accept" });
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
