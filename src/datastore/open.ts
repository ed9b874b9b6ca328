/**
 * Opens the configured datastore. Each implementation is imported only if it is
 * used: with etcd, SQLite is never loaded, and vice versa.
 */
import type { DatastoreSettings } from "../config/datastore-settings.ts";
import { commitsOneObjectAtATime } from "../effect.ts";
import { PluginError } from "../errors.ts";
import { loadOnce } from "../load-once.ts";
import type { Datastore } from "./datastore.ts";

declare const FAULTS: boolean | undefined;

export interface OpenOptions {
  /** Spreads the processes of a cluster over the members of etcd: a number from 0 up to 1. */
  readonly random?: () => number;
  /** Closes the datastore, which ends every attempt and watch. */
  readonly signal?: AbortSignal;
}

export type OpenDatastore = (settings: DatastoreSettings, options?: OpenOptions) => Promise<Datastore>;

export type EtcdSettings = Extract<DatastoreSettings, { kind: "etcd" }>;
export type EtcdOpenOptions = Pick<OpenOptions, "random">;

/** How a datastore of each kind is opened. */
export interface Openers {
  embedded(path: string): Promise<Datastore>;
  etcd(settings: EtcdSettings, options: EtcdOpenOptions): Promise<Datastore>;
}

export function openBy(openers: Openers): OpenDatastore {
  return async (settings, options = {}) => {
    const store = await atTestedLevel(await openKind(settings, openers, options));
    const { signal } = options;
    if (signal?.aborted) await store.close();
    signal?.addEventListener("abort", () => void store.close(), { once: true });
    return store;
  };
}

export const loadEmbedded = loadOnce(() => import("./embedded/embedded.ts"));
export const loadEtcd = loadOnce(() => import("./etcd/etcd.ts"));

const DIRECT: Openers = {
  embedded: async (path) => (await loadEmbedded()).openEmbedded(path),
  etcd: async (settings, options) => (await loadEtcd()).openEtcd(settings, options),
};

/** Opens it for the caller alone. `close()` leaves nothing open. */
export const openDatastore: OpenDatastore = openBy(DIRECT);

/** For a process that exits right after `close()`: cleanup that is not urgent is left to the next process. */
export const openDatastoreUntilExit: OpenDatastore = openBy({
  ...DIRECT,
  embedded: async (path) => (await loadEmbedded()).openEmbedded(path, { atClose: "leave a small journal" }),
});

/** A test build can make every datastore commit one object at a time. */
async function atTestedLevel(store: Datastore): Promise<Datastore> {
  if (typeof FAULTS === "undefined" || !FAULTS || !commitsOneObjectAtATime()) return store;
  const { oneObjectStore } = await import("./one-object-store.ts");
  return oneObjectStore(store);
}

async function openKind(settings: DatastoreSettings, openers: Openers, { random }: OpenOptions): Promise<Datastore> {
  switch (settings.kind) {
    case "embedded":
      return openers.embedded(settings.path);
    case "etcd":
      return openers.etcd(settings, random === undefined ? {} : { random });
    case "orchestrator":
      throw new PluginError(
        "config-invalid",
        "Cannot use the orchestrator's API as the datastore: this version cannot do that yet",
        {
          details: 'set "datastore_type" to "etcdv3" or "embedded"',
        },
      );
  }
}
