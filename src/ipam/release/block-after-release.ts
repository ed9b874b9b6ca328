/**
 * Blocks without a node. The last address of one leaves it empty, and so does a node that gives back a block whose
 * addresses rest: it keeps what they rest for, any node may claim it meanwhile, and nobody needs it afterwards.
 *
 *   in use ──last address released──┐
 *                                   ├──> empty, rests ──> deleted by the next DEL, search for leaks or check
 *   of a node ──given back──────────┘         └─────────> claimed by a node that finds no other block
 */
import type { Change, Datastore } from "../../datastore/datastore.ts";
import type { Prefix } from "../../ip/prefix.ts";
import type { IPAMBlock } from "../../model/ipam-block.ts";
import * as keys from "../../model/keys.ts";
import { isEmpty } from "../block.ts";
import { blockChange, decodeBlock } from "../records.ts";
import { hasResting } from "../rest.ts";

/** Whether a block is empty and has no node; its addresses may rest. */
export function isEmptyWithoutNode(block: IPAMBlock): boolean {
  return isEmpty(block) && block.affinity === undefined;
}

/** Whether nobody needs the block any more. */
export function isUnneededBlock(block: IPAMBlock, now: Date): boolean {
  return isEmptyWithoutNode(block) && !hasResting(block, now);
}

/** Updates a block after a release, or in place of one. */
export function changeAfterRelease(block: IPAMBlock, revision: string): Change {
  return isEmptyWithoutNode(block) && block.released === undefined
    ? { kind: "delete", key: keys.blockKey(block.cidr), revision }
    : blockChange(block, revision);
}

/** Deletes the block if this is still true of it; returns whether it did. */
export async function deleteUnneededBlock(
  store: Datastore,
  cidr: Prefix,
  isUnneeded: (block: IPAMBlock) => boolean,
): Promise<boolean> {
  const key = keys.blockKey(cidr);
  const [entry] = (await store.read([{ kind: "key", key }])).answers[0] ?? [];
  if (entry === undefined || !isUnneeded(decodeBlock(entry))) return false;
  return (await store.commit([{ kind: "delete", key, revision: entry.revision }])).ok;
}
