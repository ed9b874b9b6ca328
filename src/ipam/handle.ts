/**
 * What a handle records: in which blocks it has how many addresses.
 *
 * Counted anew from every block that is known, so that a count left wrong by a
 * crash is put right by whoever passes; blocks that were not read keep their
 * count.
 */
import type { Change } from "../datastore/datastore.ts";
import type { IPAMBlock } from "../model/ipam-block.ts";
import { handleKey } from "../model/keys.ts";
import { ordinalsOf } from "./block.ts";
import { handleRecordChange } from "./records.ts";
import { blockName, type View } from "./view.ts";

/**
 * The change that makes the handle true once these blocks are written. A handle
 * that is true already is guarded all the same: its release and a new address
 * must not pass each other by.
 */
export function handleChange(view: View, handle: string, written: readonly IPAMBlock[]): readonly Change[] {
  const stored = view.handle(handle);
  const counts = countsAfter(view, handle, written);
  const isLeftover = stored !== undefined && Object.keys(counts).length === 0;
  if (isLeftover || !isSameCounts(stored?.blocks ?? {}, counts)) {
    return handleRecordChange(handle, counts, stored?.revision);
  }
  if (stored === undefined || written.length === 0) return [];
  return [{ kind: "expect", key: handleKey(handle), revision: stored.revision }];
}

function countsAfter(view: View, handle: string, written: readonly IPAMBlock[]): Readonly<Record<string, number>> {
  const counts = new Map(Object.entries(view.handle(handle)?.blocks ?? {}));
  for (const cidr of view.handleBlocks(handle)) {
    if (view.block(cidr).kind === "absent") counts.delete(blockName(cidr));
  }
  const known = [...view.knownBlocks()].map((each) => each.block);
  for (const block of [...known, ...written]) {
    const count = ordinalsOf(block, { handle }).length;
    if (count > 0) counts.set(blockName(block.cidr), count);
    else counts.delete(blockName(block.cidr));
  }
  return Object.fromEntries(counts);
}

function isSameCounts(left: Readonly<Record<string, number>>, right: Readonly<Record<string, number>>): boolean {
  const names = Object.keys(left);
  return names.length === Object.keys(right).length && names.every((name) => left[name] === right[name]);
}
