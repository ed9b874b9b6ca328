/**
 * All files of a network, read one by one: what upstream's plugin does at every
 * call, and this one only when its index does not vouch for the folder.
 */
import { PluginError } from "../../errors.ts";
import { parseAddress } from "../../ip/address.ts";
import { LAST_RESERVED, type Reservation, readReservation } from "./store.ts";

export interface Folder {
  readonly reservations: readonly Reservation[];
  /** Numbers of the sets that have a `last_reserved_ip` file. */
  readonly lastReservedSets: readonly number[];
}

/** Files that bear no address's name are left alone. */
export function walk(directory: string): Folder {
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

/** Loaded here, since only a walk needs it (docs/decisions/0006-what-imports-cost.md). */
function namesIn(directory: string): readonly string[] {
  const { readdirSync }: typeof import("node:fs") = require("node:fs");
  try {
    return readdirSync(directory);
  } catch (cause) {
    const details = cause instanceof Error ? cause.message : String(cause);
    throw new PluginError("io-failure", `Cannot list "${directory}"`, { details, cause });
  }
}
