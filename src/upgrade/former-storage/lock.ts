/** The lock of the former storage and that of the present one: `datastoreReady` of their ClusterInformation. */
import type { Datastore, Entry } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import type { ClusterObjects } from "../../kube/objects.ts";
import { clusterInformation } from "../../model/cluster-information.ts";
import { CLUSTER_INFORMATION } from "../../model/kinds.ts";
import { isObject } from "../../model/shape.ts";
import { COPIED_RECORDS_ANNOTATION, UPGRADE_LOCK_ANNOTATION } from "../../model/upgrade-lock-annotation.ts";
import { changeRecord } from "../engine/change-record.ts";
import type { Backups } from "../engine/step.ts";
import { FORMER_PATH } from "./former-object.ts";

export const FORMER_INFORMATION = `${FORMER_PATH}/${CLUSTER_INFORMATION.plural}/default`;
const KEY = CLUSTER_INFORMATION.key({ name: "default" });

/** A backup that says that this upgrade has unlocked the present storage, or was about to. */
export const UNLOCK_BEGUN = "unlock-begun";

/** That the present storage is locked does not say that it was never unlocked: somebody may have locked it since. */
export async function hasUnlockBegun(backups: Pick<Backups, "read">): Promise<boolean> {
  return (await backups.read(UNLOCK_BEGUN)) !== undefined;
}

export type LockState = "absent" | "locked" | "unlocked";

export async function formerLock(objects: Pick<ClusterObjects, "read">): Promise<LockState> {
  const found = await objects.read(FORMER_INFORMATION);
  if (found === undefined) return "absent";
  const { spec } = found;
  return isObject(spec) && spec["datastoreReady"] === false ? "locked" : "unlocked";
}

/** No write if it is so already. */
export async function setFormerLock(
  objects: Pick<ClusterObjects, "read" | "patch">,
  wanted: "locked" | "unlocked",
): Promise<void> {
  const state = await formerLock(objects);
  if (state === wanted) return;
  if (state === "absent") {
    throw new PluginError("resource-missing", `Cannot lock the former storage: there is no "${FORMER_INFORMATION}"`, {
      details: "the network of this cluster was never initialized; start its node agents first",
    });
  }
  await objects.patch(FORMER_INFORMATION, { spec: { datastoreReady: wanted === "unlocked" } });
}

/** Of the present storage. */
export async function presentLock(store: Pick<Datastore, "read">): Promise<LockState> {
  const entry = await readInformation(store);
  if (entry === undefined) return "absent";
  return clusterInformation.read(entry.value, KEY).spec.datastoreReady === false ? "locked" : "unlocked";
}

/** Changes with every write of the lock: as long as it is the same, nobody has unlocked the present storage. */
export async function lockRevision(store: Pick<Datastore, "read">): Promise<string | undefined> {
  return (await readInformation(store))?.revision;
}

/** By the clock of the machine that has locked it; long ago if it cannot be read. `undefined`: no upgrade has locked it. */
export async function lockedSince(store: Pick<Datastore, "read">): Promise<Date | undefined> {
  const entry = await readInformation(store);
  const text = entry && clusterInformation.read(entry.value, KEY).metadata.annotations?.[UPGRADE_LOCK_ANNOTATION];
  return text === undefined ? undefined : new Date(Date.parse(text) || 0);
}

/** The record of the lock, with the time. */
export function withLockTime(value: string, now: Date): string {
  return withAnnotations(value, { [UPGRADE_LOCK_ANNOTATION]: now.toISOString() });
}

function withAnnotations(value: string, changes: Readonly<Record<string, string>>): string {
  const information = clusterInformation.read(value, KEY);
  const annotations = { ...information.metadata.annotations, ...changes };
  return clusterInformation.write({ ...information, metadata: { ...information.metadata, annotations } }, value);
}

/** Locks the present storage again, which somebody else has unlocked. `now`: ADDs that have begun meanwhile may still write. */
export async function lockPresentAgain(store: Datastore, now: Date): Promise<void> {
  await changeRecord(store, KEY, (value) => {
    if (value === undefined) return undefined;
    const information = clusterInformation.read(value, KEY);
    const locked = { ...information, spec: { ...information.spec, datastoreReady: false } };
    return withLockTime(clusterInformation.write(locked, value), now);
  });
}

/** How far the copies are (used-copies.ts): beside the lock from its first write until the present storage is unlocked. */
export async function copiesMark(store: Pick<Datastore, "read">): Promise<string | undefined> {
  const entry = await readInformation(store);
  return entry && markIn(entry.value);
}

/** The record of the lock, with the mark. */
export function withCopiesMark(value: string, mark: string): string {
  return withAnnotations(value, { [COPIED_RECORDS_ANNOTATION]: mark });
}

/** Throws if it is not `before` any more: what was decided by it does not hold. No write if it is so already. */
export async function replaceCopiesMark(store: Datastore, before: string | undefined, mark: string): Promise<void> {
  await changeRecord(store, KEY, (value) => {
    if (value === undefined || markIn(value) === mark) return undefined;
    if (markIn(value) === before) return withCopiesMark(value, mark);
    throw new PluginError(
      "resource-changed",
      "Cannot mark the copies: another process has changed their mark meanwhile",
      {
        details: "run the same command again",
      },
    );
  });
}

function markIn(value: string): string | undefined {
  return clusterInformation.read(value, KEY).metadata.annotations?.[COPIED_RECORDS_ANNOTATION];
}

export function isLockRecord({ key }: { readonly key: string }): boolean {
  return key === KEY;
}

/** Without the marks of the lock. No write if it is so already. */
export async function unlockPresent(store: Pick<Datastore, "read" | "commit">): Promise<void> {
  const entry = await readInformation(store);
  if (entry === undefined)
    throw new PluginError("resource-missing", "Cannot unlock the datastore: it has no ClusterInformation");
  if (isUnlocked(entry)) return;
  const information = clusterInformation.read(entry.value, KEY);
  const {
    [UPGRADE_LOCK_ANNOTATION]: _,
    [COPIED_RECORDS_ANNOTATION]: __,
    ...annotations
  } = information.metadata.annotations ?? {};
  const unlocked = {
    ...information,
    metadata: { ...information.metadata, annotations },
    spec: { ...information.spec, datastoreReady: true },
  };
  const value = JSON.stringify(unlocked);
  const { ok } = await store.commit([{ kind: "update", key: KEY, value, revision: entry.revision }]);
  if (ok) return;
  // By a request of this run that had no response, and came late.
  const found = await readInformation(store);
  if (found === undefined || !isUnlocked(found))
    throw new PluginError(
      "resource-changed",
      "Cannot unlock the datastore: its ClusterInformation has changed meanwhile",
    );
}

function isUnlocked({ value }: Entry): boolean {
  const { metadata, spec } = clusterInformation.read(value, KEY);
  return spec.datastoreReady !== false && metadata.annotations?.[UPGRADE_LOCK_ANNOTATION] === undefined;
}

/** With the revision that it has now. */
export async function readLockRecords(store: Pick<Datastore, "read">): Promise<readonly Entry[]> {
  return (await store.read([{ kind: "key", key: KEY }])).answers[0] ?? [];
}

async function readInformation(store: Pick<Datastore, "read">): Promise<Entry | undefined> {
  return (await readLockRecords(store))[0];
}
