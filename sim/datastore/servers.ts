/** The three datastores of a simulation, with the same handles for all of them. */
import type { Datastore } from "../../src/datastore/datastore.ts";
import { openMemory } from "../../src/datastore/memory/memory.ts";
import type { FaultyServer } from "../faults/faulty-server.ts";
import type { FaultyNetwork } from "../faults/network.ts";
import { type Records, recordsOfApi, recordsOfTable } from "../judge/records.ts";
import type { SimulatedProcess } from "../schedule/process.ts";
import { SimulatedApi, type SimulatedApiOptions } from "./simulated-api.ts";
import { SimulatedEtcd } from "./simulated-etcd.ts";
import { SimulatedStore } from "./simulated-store.ts";

export const DATASTORES = ["etcd", "one object", "orchestrator"] as const;
export type DatastoreKind = (typeof DATASTORES)[number];

export interface DatastoreServer {
  readonly server: FaultyServer;
  readonly connect: (process: SimulatedProcess, place: string) => Datastore;
  /** Of a process that stays and serves many calls. */
  readonly connectServing: (process: SimulatedProcess, place: string) => Datastore;
  /** Of a user, without faults. */
  readonly user: Datastore;
  /** What it holds. */
  readonly records: Records;
}

export function startDatastore(
  kind: DatastoreKind,
  network: FaultyNetwork,
  options: SimulatedApiOptions = {},
): DatastoreServer {
  if (kind === "orchestrator") {
    const server = new SimulatedApi(network, options);
    const connect: DatastoreServer["connect"] = (process, place) => server.connectStore(process, place);
    const connectServing: DatastoreServer["connect"] = (process, place) => server.connectCopyingStore(process, place);
    return { server, connect, connectServing, user: server.userStore, records: recordsOfApi(server) };
  }
  const server =
    kind === "etcd" ? new SimulatedEtcd(network) : new SimulatedStore(network, { atomicity: "one object" });
  const connect: DatastoreServer["connect"] = (process, place) => server.connect(process, place);
  const atomicity = kind === "etcd" ? "all changes" : "one object";
  const user = openMemory(server.table, { atomicity });
  return { server, connect, connectServing: connect, user, records: recordsOfTable(server.table) };
}
