/** For the node agent: its calls share the datastores that they open. */
import { statusAt } from "../file-status.ts";
import { loadEmbedded, loadEtcd, loadKube, type OpenDatastore, openBy } from "./open.ts";
import { SharedStores } from "./shared.ts";

/** Endpoints found by DNS are looked up again after this time. */
const ETCD_OLD_AFTER_MILLISECONDS = 60_000;

/** Lists and watches take longer to open than a call. */
const COPIES_IDLE_MILLISECONDS = 10 * 60_000;

/** Each call returns a function with its own set of shared datastores. `report`: tells of problems that are no call's own. */
export function shareDatastores(report: (problem: string) => void = () => {}): OpenDatastore {
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
    async orchestrator({ access }, { environment, warn, openClient }) {
      const { openKube } = await loadKube();
      // The client itself follows the files that hold credentials.
      const sign = () => (access.kubeconfigs ?? []).map(contentSign).join();
      const options = {
        copiesRecords: true,
        report,
        ...(environment && { environment }),
        ...(warn && { warn }),
        ...(openClient && { openClient }),
      };
      const source = {
        name: `orchestrator ${JSON.stringify(access)}`,
        sign,
        idleMilliseconds: COPIES_IDLE_MILLISECONDS,
      };
      return stores.share(source, () => openKube(access, options));
    },
  });
}

/** Changes if the file is rewritten in place, or replaced by another. */
function contentSign(path: string | undefined): string {
  const status = path === undefined ? undefined : statusAt(path);
  return status === undefined ? "none" : `${status.place} ${status.changed}`;
}
