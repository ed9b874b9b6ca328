/** What reports on addresses need to know of pools and reservations. */
import type { Datastore } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/read-all.ts";
import type { Prefix } from "../../ip/prefix.ts";
import { decodePool, decodeReservation } from "../../ipam/records.ts";
import { resourcesPrefix } from "../../model/keys.ts";
import type { NamedPool } from "./usage.ts";

export async function readPools(store: Datastore): Promise<readonly NamedPool[]> {
  return (await readAllEntries(store, resourcesPrefix("ippools"))).map(decodePool);
}

export async function readReserved(store: Datastore): Promise<readonly Prefix[]> {
  return (await readAllEntries(store, resourcesPrefix("ipreservations"))).flatMap(decodeReservation);
}
