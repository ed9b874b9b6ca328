/**
 * The counts of a handle: how many addresses it has in which blocks.
 *
 * It may count more addresses than its blocks have, never fewer. So it counts up
 * before an address is allocated in a block, and down after it was freed there.
 * Whoever counts down writes the block first, even one without an address of the
 * handle: a concurrent assignment from it under this handle, which has already
 * counted up, then loses its race on the block and starts again. A block that
 * does not exist may be dropped at once: it is created empty, so nobody is about
 * to allocate an address in it. This holds because a handle is read no later than
 * its blocks.
 *
 * The counts come from the known blocks, so that the next call removes a surplus
 * that a crash left; blocks that were not read keep their count. An agent may
 * remember a block as it was before the handle got an address in it: the write shows
 * that, too, before another address is taken.
 */
import type { OrderedChange } from "../datastore/datastore.ts";
import type { IPAMBlock } from "../model/ipam-block.ts";
import { handleKey } from "../model/keys.ts";
import { ordinalsOf, touched } from "./block.ts";
import { handleRecordChange, handleRewrite } from "./records.ts";
import { changeAfterRelease } from "./release/block-after-release.ts";
import { blockName, type KnownBlock, type View } from "./view.ts";

type Counts = Readonly<Record<string, number>>;

export interface HandleChanges {
  /** To be committed before anything else is changed for the handle. */
  readonly first: readonly OrderedChange[];
  /** To be committed before the blocks in which addresses are allocated. */
  readonly before: readonly OrderedChange[];
  /** To be committed after them. */
  readonly after: readonly OrderedChange[];
}

/** `taken`: the blocks in which an address of this handle is allocated, in their new state. */
export function changesToTake(view: View, handle: string, taken: readonly IPAMBlock[]): HandleChanges {
  if (taken.length === 0) return { first: [], before: [], after: changesToGive(view, [handle], []) };
  const stored = view.handle(handle);
  const surplus = surplusBlocks(view, handle, taken);
  const exact = countsAfter(view, handle, taken);
  const raised = raisedCounts(stored?.blocks ?? {}, exact, surplus, taken);
  return {
    first: surplus.map(touchOf),
    before: handleRecordChange(handle, raised, { revision: stored?.revision, node: view.node }),
    after: isSameCounts(raised, exact) ? [] : [handleRewrite(handle, exact)],
  };
}

/**
 * To be committed after the blocks in which addresses are freed; `left`: those blocks, in their new state. A handle that
 * is already correct becomes a precondition anyway, as far as the datastore supports it.
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

/** Like `changesToGive`, but counts only the blocks that were written: no other was read after the handle. */
export function changesToGiveOf(view: View, handle: string, left: readonly IPAMBlock[]): readonly OrderedChange[] {
  return recount(view, handle, withCounts(view.handle(handle)?.blocks ?? {}, handle, left), left);
}

function recount(view: View, handle: string, counts: Counts, left: readonly IPAMBlock[]): readonly OrderedChange[] {
  const stored = view.handle(handle);
  const isLeftover = stored !== undefined && Object.keys(counts).length === 0;
  if (isLeftover || !isSameCounts(stored?.blocks ?? {}, counts)) {
    return handleRecordChange(handle, counts, { revision: stored?.revision });
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

/** Writes that fail if the handle has addresses where none were found; `written`: the keys that are written anyway. */
export function surplusTouches(view: View, handle: string, written: ReadonlySet<string>): readonly OrderedChange[] {
  return surplusBlocks(view, handle, [])
    .map(touchOf)
    .filter(({ key }) => !written.has(key));
}

function touchOf({ block, revision }: KnownBlock): OrderedChange {
  return changeAfterRelease(touched(block), revision);
}

/** The counts before the blocks are written: at least the final counts, and never equal to the current ones. */
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
  // A datastore may treat the same text as no change at all, and then nobody would lose a race against it.
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
