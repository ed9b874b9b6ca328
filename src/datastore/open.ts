/**
 * Opens the datastore that the settings name. Each is imported only when it is
 * the one: who uses etcd never pays for SQLite, and the other way round.
 */
import type { DatastoreSettings } from "../config/datastore-settings.ts";
import { PluginError } from "../errors.ts";
import { statusAt } from "../file-status.ts";
import type { Lifetime } from "../lifetime.ts";
import { loadOnce } from "../load-once.ts";
import type { Datastore } from "./datastore.ts";

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

const loadEmbedded = loadOnce(() => import("./embedded/embedded.ts"));
const loadEtcd = loadOnce(() => import("./etcd/etcd.ts"));
const loadShared = loadOnce(() => import("./shared.ts"));

/** Endpoints that are found by DNS are looked for again after so long. */
const ETCD_OLD_AFTER_MILLISECONDS = 60_000;

async function openKind(settings: DatastoreSettings, { random, lifetime = "own" }: OpenOptions): Promise<Datastore> {
  switch (settings.kind) {
    case "embedded": {
      const { openEmbedded } = await loadEmbedded();
      const { path } = settings;
      if (lifetime !== "call") return openEmbedded(path, { lifetime });
      const { shareStore } = await loadShared();
      return shareStore({ name: `embedded ${path}`, sign: () => statusAt(path)?.place ?? "none" }, () =>
        openEmbedded(path),
      );
    }
    case "etcd": {
      const { openEtcd } = await loadEtcd();
      const options = random === undefined ? {} : { random };
      if (lifetime !== "call") return openEtcd(settings, options);
      const { shareStore } = await loadShared();
      const { keyFile, certFile, caCertFile } = settings;
      const name = `etcd ${JSON.stringify(settings)}`;
      const sign = () => [keyFile, certFile, caCertFile].map(contentSign).join();
      return shareStore({ name, sign, oldAfterMilliseconds: ETCD_OLD_AFTER_MILLISECONDS }, () =>
        openEtcd(settings, { ...options, remembers: true, grpcTakesOver: true }),
      );
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

/** Renewed in place, or by another file of the same name. */
function contentSign(path: string | undefined): string {
  const status = path === undefined ? undefined : statusAt(path);
  return status === undefined ? "none" : `${status.place} ${status.changed}`;
}
