/** The servers of a cluster: the orchestrator's API, and the datastore, which may be that API. */
import { type DatastoreServer, startDatastore } from "../datastore/servers.ts";
import { SimulatedApi } from "../datastore/simulated-api.ts";
import type { FaultyNetwork } from "../faults/network.ts";
import type { Script } from "../script/operation.ts";

export interface Servers {
  readonly api: SimulatedApi;
  readonly store: DatastoreServer;
  /** The datastore is not the API. */
  readonly isEtcd: boolean;
}

export function startServers({ datastore, seed }: Pick<Script, "datastore" | "seed">, network: FaultyNetwork): Servers {
  const options = { watchList: seed % 2 === 0 ? ("served" as const) : ("refused" as const) };
  const store = startDatastore(datastore, network, options);
  if (store.server instanceof SimulatedApi) return { api: store.server, store, isEtcd: false };
  return { api: new SimulatedApi(network, options), store, isEtcd: true };
}
