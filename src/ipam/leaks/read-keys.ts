/** Reads any number of records by their keys: more than fit into one request. */
import type { Datastore, Entry, Wanted } from "../../datastore/datastore.ts";
import { MOST_IN_ONE_REQUEST } from "../../datastore/preconditions.ts";
import type { Prefix } from "../../ip/prefix.ts";
import type { IPAMBlock } from "../../model/ipam-block.ts";
import { blockKey } from "../../model/keys.ts";
import { decodeBlock } from "../records.ts";

/** Those that exist. */
export async function readKeys(store: Datastore, keys: readonly string[]): Promise<readonly Entry[]> {
  const entries: Entry[] = [];
  for (let start = 0; start < keys.length; start += MOST_IN_ONE_REQUEST) {
    const some = keys.slice(start, start + MOST_IN_ONE_REQUEST).map((key): Wanted => ({ kind: "key", key }));
    entries.push(...(await store.read(some)).answers.flat());
  }
  return entries;
}

/** Those that exist, each once. */
export async function readBlocks(store: Datastore, cidrs: readonly Prefix[]): Promise<readonly IPAMBlock[]> {
  return (await readKeys(store, [...new Set(cidrs.map(blockKey))])).map(decodeBlock);
}
