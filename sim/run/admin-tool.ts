/** The admin tool, as an operator of the cluster runs it: in a process of its own, on the same network as everybody. */
import { type AdminRun, runInside } from "../../test/support/admin-context.ts";
import { NETWORK_FILE, networkList } from "../node/network-config.ts";
import type { SimulatedProcess } from "../schedule/process.ts";
import type { Servers } from "./servers.ts";

const PLACE = "admin";

/** Says nothing if the process dies. */
export function runAdminCommand(
  args: readonly string[],
  process: SimulatedProcess,
  servers: Servers,
): Promise<AdminRun> {
  const list = networkList({ datastore: servers.isEtcd ? "etcd" : "orchestrator", node: PLACE });
  return process.unlessKilled(
    runInside(args, {
      ...{ hostName: PLACE, signal: process.signal, now: process.now(), files: { [NETWORK_FILE]: list } },
      wait: (milliseconds) => process.wait(milliseconds),
      clock: { now: process.elapsed, wait: process.wait },
      openDatastore: async () => servers.store.connect(process, PLACE),
      openKubeClient: async () => servers.api.connect(process, PLACE),
    }),
  );
}
