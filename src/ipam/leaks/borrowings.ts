/**
 * Which blocks a node borrowed from: it has, or had, addresses in them, and they are
 * not its own. ADD writes such a record with the address; DEL leaves it, so that it
 * costs no request.
 */
import type { Datastore, Wanted } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import type { Prefix } from "../../ip/prefix.ts";
import { blockKey, borrowedPrefix, parseKey } from "../../model/keys.ts";
import { hasAddressesOf } from "../block.ts";
import { decodeBlock } from "../records.ts";

export interface Borrowing {
  readonly cidr: Prefix;
  readonly key: string;
  readonly revision: string;
}

export async function readBorrowings(store: Datastore, node: string): Promise<readonly Borrowing[]> {
  return (await readAllEntries(store, borrowedPrefix(node))).flatMap(({ key, revision }): Borrowing[] => {
    const parts = parseKey(key);
    return parts?.kind === "borrowed" ? [{ cidr: parts.cidr, key, revision }] : [];
  });
}

/**
 * Deletes the records of blocks in which the node has no address any more, each only if its block has not changed. A
 * datastore that commits one object at a time cannot guard that: there the records stay.
 */
export async function forgetBorrowings(store: Datastore, node: string): Promise<void> {
  if (store.atomicity !== "all changes") return;
  for (const { cidr, key, revision } of await readBorrowings(store, node)) {
    const wanted: Wanted = { kind: "key", key: blockKey(cidr) };
    const entry = (await store.read([wanted])).answers[0]?.[0];
    if (entry && hasAddressesOf(decodeBlock(entry), node)) continue;
    await store.commit([
      { kind: "expect", key: wanted.key, revision: entry?.revision },
      { kind: "delete", key, revision },
    ]);
  }
}
