/** For an agent that stays: its calls share the datastores that they open. */
import { statusAt } from "../file-status.ts";
import { loadEmbedded, loadEtcd, type OpenDatastore, openBy } from "./open.ts";
import { SharedStores } from "./shared.ts";

/** Endpoints that are found by DNS are looked for again after so long. */
const ETCD_OLD_AFTER_MILLISECONDS = 60_000;

/** Each call makes a function that shares nothing with that of another call. */
export function shareDatastores(): OpenDatastore {
  const stores = new SharedStores();
  return openBy({
    async embedded(path) {
      const { openEmbedded } = await loadEmbedded();
      const source = { name: `embedded ${path}`, sign: () => statusAt(path)?.place ?? "none" };
      return stores.share(source, () => openEmbedded(path));
    },
    async etcd(settings, options) {
      const { openEtcd } = await loadEtcd();
      const { keyFile, certFile, caCertFile } = settings;
      const name = `etcd ${JSON.stringify(settings)}`;
      const sign = () => [keyFile, certFile, caCertFile].map(contentSign).join();
      return stores.share({ name, sign, oldAfterMilliseconds: ETCD_OLD_AFTER_MILLISECONDS }, () =>
        openEtcd(settings, { ...options, cachesReads: true, upgradesToGrpc: true }),
      );
    },
  });
}

/** Renewed in place, or by another file of the same name. */
function contentSign(path: string | undefined): string {
  const status = path === undefined ? undefined : statusAt(path);
  return status === undefined ? "none" : `${status.place} ${status.changed}`;
}
