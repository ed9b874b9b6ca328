/**
 * Reads all files of a network, one by one. Upstream's plugin does so at every call,
 * this one only if its index is stale.
 */
import { PluginError } from "../../errors.ts";
import { parseAddress } from "../../ip/address.ts";
import { LAST_RESERVED, type Reservation, readReservation } from "./store.ts";

export interface NetworkFiles {
  readonly reservations: readonly Reservation[];
  /** The numbers of the sets that have a `last_reserved_ip` file. */
  readonly lastReservedSets: readonly number[];
}

/** Ignores files whose name is not an address. */
export function readNetworkFiles(directory: string): NetworkFiles {
  const names = namesIn(directory);
  const reservations = names
    .filter((name) => parseAddress(name) !== undefined)
    .map((address) => readReservation(directory, address))
    .filter((reservation) => reservation !== undefined);
  const lastReservedSets = names
    .filter((name) => name.startsWith(LAST_RESERVED))
    .map((name) => Number(name.slice(LAST_RESERVED.length)))
    .filter((set) => Number.isInteger(set) && set >= 0);
  return { reservations, lastReservedSets };
}

/** Loads `node:fs` only now, since an ordinary call does not need it (docs/decisions/0006-what-imports-cost.md). */
function namesIn(directory: string): readonly string[] {
  const { readdirSync }: typeof import("node:fs") = require("node:fs");
  try {
    return readdirSync(directory);
  } catch (cause) {
    const details = cause instanceof Error ? cause.message : String(cause);
    throw new PluginError("io-failure", `Cannot list "${directory}"`, { details, cause });
  }
}
