/**
 * Opens the datastore that the settings name. Each is imported only when it is
 * the one: who uses etcd never pays for SQLite, and the other way round.
 */
import type { DatastoreSettings } from "../config/datastore-settings.ts";
import { PluginError } from "../errors.ts";
import type { Datastore } from "./datastore.ts";

/** How long what a call opens is of use. */
export type Lifetime = "process" | "call";

export interface OpenOptions {
  /** Spreads the processes of a cluster over the members of etcd: a number from 0 up to 1. */
  readonly random?: () => number;
  /**
   * `process`: the process ends right after `close()`, so nothing need be tidied up that the next one can take over.
   * `call`: the process goes on, and opens the same datastore again and again.
   */
  readonly lifetime?: Lifetime | "own";
  /** Closes the datastore, and with it ends every attempt and watch. */
  readonly signal?: AbortSignal;
}

export async function openDatastore(settings: DatastoreSettings, options: OpenOptions = {}): Promise<Datastore> {
  const store = await openKind(settings, options);
  const { signal } = options;
  if (signal?.aborted) await store.close();
  signal?.addEventListener("abort", () => void store.close(), { once: true });
  return store;
}

async function openKind(settings: DatastoreSettings, { random, lifetime = "own" }: OpenOptions): Promise<Datastore> {
  switch (settings.kind) {
    case "embedded": {
      const { openEmbedded } = await import("./embedded/embedded.ts");
      if (lifetime !== "call") return openEmbedded(settings.path, { lifetime });
      const { shareFile } = await import("./embedded/shared.ts");
      return shareFile(settings.path, () => openEmbedded(settings.path));
    }
    case "etcd": {
      const { openEtcd } = await import("./etcd/etcd.ts");
      return openEtcd(settings, { connectsEarly: lifetime !== "call", ...(random === undefined ? {} : { random }) });
    }
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
