/**
 * Which blocks a node borrowed from: it has, or had, addresses in them, and they are
 * not its own. ADD writes such a record with the address; DEL leaves it, so that it
 * costs no request.
 */
import type { Change, Datastore, Entry, Wanted } from "../../datastore/datastore.ts";
import { readAllEntries } from "../../datastore/pages.ts";
import type { Prefix } from "../../ip/prefix.ts";
import type { IPAMBlock } from "../../model/ipam-block.ts";
import { blockKey, borrowedKey, borrowedPrefix, parseKey } from "../../model/keys.ts";
import { hasAddressesOf, touched } from "../block.ts";
import { blockChange, decodeBlock } from "../records.ts";
import { readKeys } from "./read-keys.ts";

export interface Borrowing {
  readonly cidr: Prefix;
  readonly key: string;
  readonly revision: string;
}

/** On the orchestrator's API this costs the server the claims of all nodes. */
export async function readBorrowings(store: Datastore, node: string): Promise<readonly Borrowing[]> {
  return borrowingsIn(await readAllEntries(store, borrowedPrefix(node)));
}

/** Those of these blocks. */
export async function readBorrowingsOf(
  store: Datastore,
  node: string,
  blocks: readonly Prefix[],
): Promise<readonly Borrowing[]> {
  return borrowingsIn(
    await readKeys(
      store,
      blocks.map((cidr) => borrowedKey(node, cidr)),
    ),
  );
}

function borrowingsIn(entries: readonly Entry[]): readonly Borrowing[] {
  return entries.flatMap(({ key, revision }): Borrowing[] => {
    const parts = parseKey(key);
    return parts?.kind === "borrowed" ? [{ cidr: parts.cidr, key, revision }] : [];
  });
}

/**
 * Deletes the records of blocks in which the node has no address any more, and that are not needed for another reason. If all changes are committed at once, the
 * record is deleted unless the block has changed. Otherwise:
 *
 *   record marked -> block written -> record deleted
 *
 * An ADD writes the record, then the block. If it wrote the record before the mark, it loses its race on the block, and
 * does both again; if after the mark, the record is another one, and stays. Writing the same record again without a mark
 * might change nothing, not even the revision. A block that is gone after the mark makes every ADD lose that knew it.
 * What stops half way leaves a record that counts as any other.
 */
export async function forgetBorrowings(
  store: Datastore,
  node: string,
  {
    isNeeded = () => false,
    borrowings,
  }: {
    readonly isNeeded?: (block: IPAMBlock) => boolean;
    /** If they are known; all of the node otherwise. */
    readonly borrowings?: readonly Borrowing[] | undefined;
  } = {},
): Promise<void> {
  for (const { cidr, key, revision } of borrowings ?? (await readBorrowings(store, node))) {
    const wanted: Wanted = { kind: "key", key: blockKey(cidr) };
    const entry = (await store.read([wanted])).answers[0]?.[0];
    const block = entry && decodeBlock(entry);
    if (block && (hasAddressesOf(block, node) || isNeeded(block))) continue;
    const unchanged: Change = { kind: "expect", key: wanted.key, revision: entry?.revision };
    await store.commit(
      store.atomicity === "all changes"
        ? [unchanged, { kind: "delete", key, revision }]
        : [
            { kind: "update", key, value: MARKED, revision },
            block ? blockChange(touched(block), entry.revision) : unchanged,
            { kind: "rewrite", key, value: undefined },
          ],
    );
  }
}

const MARKED = '{"deleted":true}';
