/**
 * Whether the datastore may be used, according to its ClusterInformation.
 *
 * A datastore without one is uninitialized. An embedded datastore belongs to
 * this host alone and is initialized by its first ADD; any other is initialized
 * by the administrator. One that says `datastoreReady: false` is locked: nobody
 * changes its IPAM data (docs/datastores.md).
 */
import type { DatastoreSettings } from "../config/datastore-settings.ts";
import type { Change, Entry, Wanted } from "../datastore/datastore.ts";
import { PluginError } from "../errors.ts";
import { API_VERSION, identity } from "../identity.ts";
import type { ClusterInformation } from "../model/cluster-information.ts";
import { CLUSTER_INFORMATION_KEY } from "../model/keys.ts";
import { type LockOwner, readLockOwner, readStoredReadiness } from "../model/stored-resources.ts";

export const WANTED_CLUSTER: Wanted = { kind: "key", key: CLUSTER_INFORMATION_KEY };

/** What to do with an uninitialized datastore. */
export type WhenUninitialized =
  | { readonly whenUninitialized: "create"; readonly now: Date; readonly uid: string }
  | { readonly whenUninitialized: "refuse" }
  | { readonly whenUninitialized: "accept" };

/** An upgrade, a migration or an administrator has locked the datastore. */
export class DatastoreLocked extends PluginError {
  constructor(owner: LockOwner) {
    super(
      "try-again-later",
      'Cannot use the datastore: it is locked (its ClusterInformation "default" says that it is not ready)',
      { details: owner === "upgrade" ? BY_UPGRADE : BY_OTHERS },
    );
  }
}

/** Without the command that unlocks it: addresses would be assigned before the nodes agree on where they are recorded. */
const BY_UPGRADE =
  `an upgrade is in progress, and unlocks it when the nodes are updated; how far it is: ${identity.adminTool} upgrade status. ` +
  `If it has stopped, continue it (${identity.adminTool} upgrade apply) or go back (${identity.adminTool} upgrade rollback)`;
const UNLOCK = `${identity.adminTool} patch clusterinformation default -p '{"spec":{"datastoreReady":true}}'`;
const BY_OTHERS =
  `a migration or an administrator has locked it, and unlocks it at the end; ` +
  `if nobody works on it any more, unlock it with: ${UNLOCK}`;

/**
 * Throws unless the datastore is ready. Returns what belongs to every commit that rests on it: the precondition that it
 * still is, or the change that initializes it, if the caller may do that.
 */
export function requireReady(
  answer: readonly Entry[] | undefined,
  uninitialized: WhenUninitialized,
): readonly Change[] {
  const entry = answer?.[0];
  if (entry) {
    if (!readStoredReadiness(entry.value, entry.key)) throw new DatastoreLocked(readLockOwner(entry.value, entry.key));
    return [{ kind: "expect", key: entry.key, revision: entry.revision }];
  }
  if (uninitialized.whenUninitialized === "create") return [readyChange(uninitialized)];
  if (uninitialized.whenUninitialized === "accept")
    return [{ kind: "expect", key: CLUSTER_INFORMATION_KEY, revision: undefined }];
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
export function readyForReleasing(answer: readonly Entry[] | undefined): readonly Change[] {
  return requireReady(answer, { whenUninitialized: "accept" });
}

function readyChange({ now, uid }: { readonly now: Date; readonly uid: string }): Change {
  const ready: ClusterInformation = {
    apiVersion: API_VERSION,
    kind: "ClusterInformation",
    metadata: { name: "default", uid, creationTimestamp: now.toISOString() },
    spec: { clusterGUID: uid.replaceAll("-", ""), datastoreReady: true },
  };
  return { kind: "create", key: CLUSTER_INFORMATION_KEY, value: JSON.stringify(ready) };
}
