/**
 * What a handle records: in which blocks it has how many addresses.
 *
 * It may name more than its blocks hold, never less. So it counts up before the
 * block takes an address and down after the block has given it back. Who counts
 * down writes the block first, even one that holds nothing of the handle: whoever
 * is about to take an address of it under this handle, and has counted up for
 * that, then loses its race on the block and begins again. A block that does not
 * exist may be dropped at once: it is created empty, so nobody is about to take
 * an address of it. That holds because a handle is read no later than its blocks.
 *
 * Counted from the blocks that are known, so that a surplus that a crash left is
 * removed by whoever passes; blocks that were not read keep their count.
 */
import type { OrderedChange } from "../datastore/datastore.ts";
import type { IPAMBlock } from "../model/ipam-block.ts";
import { handleKey } from "../model/keys.ts";
import { ordinalsOf, touched } from "./block.ts";
import { handleRecordChange, handleRewrite } from "./records.ts";
import { leftBlockChange } from "./release/left-block.ts";
import { blockName, type KnownBlock, type View } from "./view.ts";

type Counts = Readonly<Record<string, number>>;

export interface HandleChanges {
  /** To be committed before the blocks that addresses are taken from. */
  readonly before: readonly OrderedChange[];
  /** To be committed after them. */
  readonly after: readonly OrderedChange[];
}

/** `taken`: the blocks that an address of this handle is taken from, as they are then. */
export function changesToTake(view: View, handle: string, taken: readonly IPAMBlock[]): HandleChanges {
  if (taken.length === 0) return { before: [], after: changesToGive(view, [handle], []) };
  const stored = view.handle(handle);
  const surplus = surplusBlocks(view, handle, taken);
  const exact = countsAfter(view, handle, taken);
  const raised = raisedCounts(stored?.blocks ?? {}, exact, surplus, taken);
  return {
    before: handleRecordChange(handle, raised, stored?.revision),
    after: [...surplus.map(touchOf), ...(isSameCounts(raised, exact) ? [] : [handleRewrite(handle, exact)])],
  };
}

/**
 * To be committed after the blocks that addresses are given back to; `left`: those blocks, as they are then. A handle
 * that is true already is guarded all the same, as far as the datastore can.
 */
export function changesToGive(
  view: View,
  handles: readonly string[],
  left: readonly IPAMBlock[],
): readonly OrderedChange[] {
  const surplus = new Map(
    handles.flatMap((handle) => surplusBlocks(view, handle, left)).map((known) => [blockName(known.block.cidr), known]),
  );
  return [
    ...[...surplus.values()].map(touchOf),
    ...handles.flatMap((handle) => recount(view, handle, countsAfter(view, handle, left), left)),
  ];
}

/** As `changesToGive`, but counts only the blocks that were written: no other was read after the handle. */
export function changesToGiveOf(view: View, handle: string, left: readonly IPAMBlock[]): readonly OrderedChange[] {
  return recount(view, handle, withCounts(view.handle(handle)?.blocks ?? {}, handle, left), left);
}

function recount(view: View, handle: string, counts: Counts, left: readonly IPAMBlock[]): readonly OrderedChange[] {
  const stored = view.handle(handle);
  const isLeftover = stored !== undefined && Object.keys(counts).length === 0;
  if (isLeftover || !isSameCounts(stored?.blocks ?? {}, counts)) {
    return handleRecordChange(handle, counts, stored?.revision);
  }
  if (stored === undefined || left.length === 0) return [];
  return [{ kind: "expect", key: handleKey(handle), revision: stored.revision }];
}

/** The known blocks that the handle counts too many addresses in; `written`: those that are written anyway. */
function surplusBlocks(view: View, handle: string, written: readonly IPAMBlock[]): readonly KnownBlock[] {
  const busy = new Set(written.map(({ cidr }) => blockName(cidr)));
  const counts = view.handle(handle)?.blocks ?? {};
  return view.handleBlocks(handle).flatMap((cidr) => {
    const known = view.block(cidr);
    if (known.kind !== "present" || busy.has(blockName(cidr))) return [];
    const count = counts[blockName(cidr)] ?? 0;
    return count > ordinalsOf(known.block, { handle }).length ? known : [];
  });
}

function touchOf({ block, revision }: KnownBlock): OrderedChange {
  return leftBlockChange(touched(block), revision);
}

/** What the handle says before its blocks are written: at least what it will hold, and never what it says now. */
function raisedCounts(
  stored: Counts,
  exact: Counts,
  surplus: readonly KnownBlock[],
  taken: readonly IPAMBlock[],
): Counts {
  const raised: Record<string, number> = { ...exact };
  for (const name of [...surplus, ...taken.map((block) => ({ block }))].map(({ block }) => blockName(block.cidr))) {
    raised[name] = Math.max(stored[name] ?? 0, exact[name] ?? 0);
  }
  const [first] = taken.map(({ cidr }) => blockName(cidr));
  // A datastore may take a record that says the same for no change at all, and then nobody would lose a race against it.
  if (first !== undefined && isSameCounts(raised, stored)) raised[first] = (raised[first] ?? 0) + 1;
  return raised;
}

function countsAfter(view: View, handle: string, written: readonly IPAMBlock[]): Counts {
  const counts = { ...view.handle(handle)?.blocks };
  for (const cidr of view.handleBlocks(handle)) {
    if (view.block(cidr).kind === "absent") delete counts[blockName(cidr)];
  }
  const known = [...view.knownBlocks()].map((each) => each.block);
  return withCounts(counts, handle, [...known, ...written]);
}

function withCounts(counts: Counts, handle: string, blocks: readonly IPAMBlock[]): Counts {
  const all = new Map(Object.entries(counts));
  for (const block of blocks) {
    const count = ordinalsOf(block, { handle }).length;
    if (count > 0) all.set(blockName(block.cidr), count);
    else all.delete(blockName(block.cidr));
  }
  return Object.fromEntries(all);
}

function isSameCounts(left: Counts, right: Counts): boolean {
  const names = Object.keys(left);
  return names.length === Object.keys(right).length && names.every((name) => left[name] === right[name]);
}
