/** The pools and reservations for reports on addresses. */
import type { Datastore, Entry } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import { type ReadEach, readEach } from "../../datastore/read-each.ts";
import type { Prefix } from "../../ip/prefix.ts";
import { markOverlapping } from "../../ipam/overlapping-pools.ts";
import type { Pool } from "../../ipam/pools.ts";
import { decodePool, decodeReservation } from "../../ipam/records.ts";
import { resourcesPrefix } from "../../model/keys.ts";

export async function findPools(store: Datastore): Promise<ReadEach<Pool>> {
  return poolsIn(await readAllEntries(store, resourcesPrefix("ippools")));
}

export function poolsIn(entries: readonly Entry[]): ReadEach<Pool> {
  const { readable, unreadable } = readEach(entries, decodePool);
  return { readable: markOverlapping(readable), unreadable };
}

export async function findReserved(store: Datastore): Promise<ReadEach<Prefix>> {
  const entries = await readAllEntries(store, resourcesPrefix("ipreservations"));
  const { readable, unreadable } = readEach(entries, decodeReservation);
  return { readable: readable.flat(), unreadable };
}
