/** Reads what the present storage contains of the kinds that are moved. */
import type { Datastore, Entry } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import {
  ALL_AFFINITIES_PREFIX,
  ALL_BORROWED_PREFIX,
  blocksPrefix,
  HANDLES_PREFIX,
  IPAM_CONFIGURATION_KEY,
} from "../../model/keys.ts";
import { FORMER_RESOURCES } from "./former-kinds.ts";

export const IPAM_PREFIXES: readonly string[] = [
  IPAM_CONFIGURATION_KEY,
  ALL_AFFINITIES_PREFIX,
  ALL_BORROWED_PREFIX,
  HANDLES_PREFIX,
  blocksPrefix(4),
  blocksPrefix(6),
];

export const RESOURCE_PREFIXES: readonly string[] = FORMER_RESOURCES.map(({ target }) => target.prefix());

export const ALL_PREFIXES: readonly string[] = [...RESOURCE_PREFIXES, ...IPAM_PREFIXES];

/** By key. */
export async function readRecords(store: Datastore, prefixes: readonly string[]): Promise<ReadonlyMap<string, Entry>> {
  const records = new Map<string, Entry>();
  for (const prefix of prefixes) for (const entry of await readAllEntries(store, prefix)) records.set(entry.key, entry);
  return records;
}
