/** The servers of a cluster: the orchestrator's API, and the datastore, which may be that API. */
import { type DatastoreKind, type DatastoreServer, startDatastore } from "../datastore/servers.ts";
import { SimulatedApi } from "../datastore/simulated-api.ts";
import type { FaultyNetwork } from "../faults/network.ts";

export interface Servers {
  readonly api: SimulatedApi;
  readonly store: DatastoreServer;
  /** The datastore is not the API. */
  readonly isEtcd: boolean;
}

export function startServers(kind: DatastoreKind, network: FaultyNetwork): Servers {
  const store = startDatastore(kind, network);
  if (store.server instanceof SimulatedApi) return { api: store.server, store, isEtcd: false };
  return { api: new SimulatedApi(network), store, isEtcd: true };
}
