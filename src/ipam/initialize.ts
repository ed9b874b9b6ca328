/** Makes an empty datastore usable: plugins and agents require its ClusterInformation. */
import type { Datastore } from "../datastore/datastore.ts";
import { PluginError } from "../errors.ts";
import { clusterInformation, withClusterVersion } from "../model/cluster-information.ts";
import { CLUSTER_INFORMATION_KEY } from "../model/keys.ts";
import { type LockOwner, readLockOwner } from "../model/stored-resources.ts";
import { VERSION } from "../version.ts";
import { WANTED_CLUSTER } from "./cluster.ts";

export interface Initialization {
  readonly state: "initialized" | "already initialized" | "locked";
  readonly clusterGUID: string;
  /** If it is locked. */
  readonly lockedBy?: LockOwner;
}

interface Origin {
  readonly now: () => Date;
  readonly uuid: () => string;
}

/** `before`: what has to be there by the time the datastore is initialized; run only if it is not. A locked one stays as it is. */
export async function initialize(
  store: Datastore,
  { now, uuid }: Origin,
  before?: () => Promise<void>,
): Promise<Initialization> {
  const found = await readState(store);
  if (found) return found;

  await before?.();
  const uid = uuid();
  const clusterGUID = uid.replaceAll("-", "");
  const metadata = { name: "default", uid, creationTimestamp: now().toISOString() };
  const ready = clusterInformation.make(metadata, { clusterGUID, datastoreReady: true });
  const value = clusterInformation.write(withClusterVersion(ready, VERSION));
  const written = await store.commit([{ kind: "create", key: CLUSTER_INFORMATION_KEY, value }]);
  if (written.ok) return { state: "initialized", clusterGUID };

  // Another process created it first; its record counts.
  const theirs = await readState(store);
  if (theirs) return theirs;
  throw new PluginError(
    "try-again-later",
    "Cannot initialize the datastore: others create and delete its ClusterInformation",
  );
}

async function readState(store: Datastore): Promise<Initialization | undefined> {
  const entry = (await store.read([WANTED_CLUSTER])).answers[0]?.[0];
  if (!entry) return undefined;
  const { spec } = clusterInformation.read(entry.value, entry.key);
  const clusterGUID = spec.clusterGUID ?? "";
  if (spec.datastoreReady !== false) return { state: "already initialized", clusterGUID };
  return { state: "locked", clusterGUID, lockedBy: readLockOwner(entry.value, entry.key) };
}
