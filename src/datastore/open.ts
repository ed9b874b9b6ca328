/**
 * Opens the configured datastore. Each implementation is imported only if it is
 * used: with etcd, SQLite is never loaded, and vice versa.
 */
import type { DatastoreSettings } from "../config/datastore-settings.ts";
import { commitsOneObjectAtATime } from "../effect.ts";
import { loadOnce } from "../load-once.ts";
import type { Datastore } from "./datastore.ts";
import type { KubeOpenOptions } from "./kube/open.ts";

declare const FAULTS: boolean | undefined;

export interface OpenOptions extends KubeOpenOptions {
  /** Spreads the processes of a cluster over the members of etcd: a number from 0 up to 1. */
  readonly random?: () => number;
  /** Told if etcd does not respond for 2 seconds, with the time that is left for retries. */
  readonly onSilence?: (url: string, leftMilliseconds: number) => void;
  /** Closes the datastore, which ends every attempt and watch. */
  readonly signal?: AbortSignal;
}

export type OpenDatastore = (settings: DatastoreSettings, options?: OpenOptions) => Promise<Datastore>;

export type EtcdSettings = Extract<DatastoreSettings, { kind: "etcd" }>;
export type EtcdOpenOptions = Pick<OpenOptions, "random" | "onSilence">;
export type OrchestratorSettings = Extract<DatastoreSettings, { kind: "orchestrator" }>;

/** How a datastore of each kind is opened. */
export interface Openers {
  embedded(path: string): Promise<Datastore>;
  etcd(settings: EtcdSettings, options: EtcdOpenOptions): Promise<Datastore>;
  orchestrator(settings: OrchestratorSettings, options: KubeOpenOptions): Promise<Datastore>;
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
export const loadKube = loadOnce(() => import("./kube/open.ts"));
export const loadEtcd = loadOnce(() => import("./etcd/etcd.ts"));

const DIRECT: Openers = {
  embedded: async (path) => (await loadEmbedded()).openEmbedded(path),
  etcd: async (settings, options) => (await loadEtcd()).openEtcd(settings, options),
  orchestrator: async ({ access }, options) => (await loadKube()).openKube(access, options),
};

/** Opens it for the caller alone. `close()` leaves nothing open. */
export const openDatastore: OpenDatastore = openBy(DIRECT);

/** For a process that follows the datastore for a long time. */
export const openDatastoreToFollow: OpenDatastore = openBy({
  ...DIRECT,
  etcd: async (settings, options) => (await loadEtcd()).openEtcd(settings, { ...options, upgradesToGrpc: true }),
});

/** For a process that exits right after `close()`: cleanup that is not urgent is left to the next process. */
export const openDatastoreUntilExit: OpenDatastore = openBy({
  ...DIRECT,
  embedded: async (path) => (await loadEmbedded()).openEmbedded(path, { atClose: "leave a small journal" }),
});

/** A test build can make every datastore commit one object at a time. */
async function atTestedLevel(store: Datastore): Promise<Datastore> {
  if (store.atomicity === "one object") return store;
  if (typeof FAULTS === "undefined" || !FAULTS || !commitsOneObjectAtATime()) return store;
  const { oneObjectStore } = await import("./one-object-store.ts");
  return oneObjectStore(store);
}

async function openKind(settings: DatastoreSettings, openers: Openers, options: OpenOptions): Promise<Datastore> {
  const { random, onSilence } = options;
  switch (settings.kind) {
    case "embedded":
      return openers.embedded(settings.path);
    case "etcd":
      return openers.etcd(settings, {
        ...(random === undefined ? {} : { random }),
        ...(onSilence === undefined ? {} : { onSilence }),
      });
    case "orchestrator":
      return openers.orchestrator(settings, options);
  }
}
