/** The servers of a cluster: the orchestrator's API, and the datastore, which may be that API. */
import type { Datastore } from "../../src/datastore/datastore.ts";
import { openMemory } from "../../src/datastore/memory/memory.ts";
import type { KubeClient } from "../../src/kube/api.ts";
import { SimulatedApi } from "../datastore/simulated-api.ts";
import { SimulatedStore } from "../datastore/simulated-store.ts";
import type { FaultyNetwork } from "../faults/network.ts";
import { type Records, recordsOfApi, recordsOfTable } from "../judge/records.ts";
import type { SimulatedProcess } from "../schedule/process.ts";
import type { DatastoreKind } from "../script/operation.ts";

export interface Servers {
  readonly api: SimulatedApi;
  /** The server of the datastore. */
  readonly store: SimulatedStore | SimulatedApi;
  /** The records in it, as they are. */
  readonly records: Records;
  /** The datastore of a user: without faults, everything at once. */
  readonly userStore: Datastore;
  readonly isEtcd: boolean;
  connectStore(process: SimulatedProcess, place: string): Datastore;
  connectApi(process: SimulatedProcess, place: string): KubeClient;
}

export function startServers(kind: DatastoreKind, network: FaultyNetwork): Servers {
  const api = new SimulatedApi(network);
  const connectApi = (process: SimulatedProcess, place: string) => api.connect(process, place);
  if (kind === "orchestrator") {
    const connectStore = (process: SimulatedProcess, place: string) => api.connectStore(process, place);
    const { userStore } = api;
    return { api, store: api, records: recordsOfApi(api), userStore, isEtcd: false, connectStore, connectApi };
  }
  const store = new SimulatedStore(network, { atomicity: kind === "etcd" ? "all changes" : "one object" });
  const connectStore = (process: SimulatedProcess, place: string) => store.connect(process, place);
  const userStore = openMemory(store.table);
  return { api, store, records: recordsOfTable(store.table), userStore, isEtcd: true, connectStore, connectApi };
}
