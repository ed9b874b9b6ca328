/**
 * Borrows an address from another host's block: the last resort, unless strict
 * affinity forbids it.
 *
 * First from the blocks that were read anyway. Then from all existing blocks, a
 * page at a time, from this node's own start: never one read per possible block.
 * After all of them, either a free block that the candidates missed is found, or
 * the pools are known to be full.
 */
import type { Entry, Wanted } from "../../datastore/datastore.ts";
import { prefixCovers } from "../../ip/prefix.ts";
import { candidateBlocks } from "../candidates.ts";
import type { KnownBlock } from "../view.ts";
import { type Choice, restedFirst, type Search, type TakeChoice, takeFrom, takeNext } from "./choice.ts";
import { exhausted } from "./exhaustion.ts";
import { fromGap } from "./new-block.ts";

/** A full block has about ten kilobytes of text: the largest page is read well within the time limit of one attempt. */
const FIRST_PAGE = 128;
const LARGEST_PAGE = 512;
/** Enough for the 16,384 blocks of a /12. */
const PAGES = 42;

export function byBorrowing(search: Search): Choice | undefined {
  return fromForeignBlocks(search, [...search.view.knownBlocks(search.family)]);
}

/** Searches the existing blocks; throws if none of them has a free address and no new block is possible. */
export function fromAnyBlock(search: Search): Choice {
  const listing = listBlocks(search);
  for (const page of listing.pages) {
    const choice = fromForeignBlocks(
      search,
      page.flatMap((entry) => search.view.decodeBlock(entry) ?? []),
    );
    if (choice) return choice;
  }
  if (listing.next) return { kind: "read", wanted: [listing.next] };

  const seen = listing.pages.reduce((total, page) => total + page.length, 0);
  const gap = listing.complete ? fromGap(search, seen) : undefined;
  if (gap) return gap;
  throw exhausted(search, { complete: listing.complete });
}

function fromForeignBlocks(search: Search, blocks: readonly KnownBlock[]): Choice | undefined {
  return search.view.configuration().strictAffinity ? undefined : restedFirst(choicesOf(search, blocks));
}

function* choicesOf(search: Search, blocks: readonly KnownBlock[]): Generator<TakeChoice> {
  for (const known of blocks) {
    if (known.block.unallocated.length === 0) continue;
    if (!search.pools.some((pool) => prefixCovers(pool.cidr, known.block.cidr))) continue;
    const taken = takeNext(search, known.block);
    if (taken) yield takeFrom(search, known, taken);
  }
}

interface Listing {
  readonly pages: readonly (readonly Entry[])[];
  /** The page to read next. */
  readonly next?: Wanted;
  /** Every existing block was read. */
  readonly complete: boolean;
}

/** From the node's own start to the last key, then from the first key back to the start. */
function listBlocks(search: Search): Listing {
  const { view, family } = search;
  const start = startKey(search);
  const pages: (readonly Entry[])[] = [];
  let after: string | undefined = start;
  let wrapped = start === undefined;
  while (pages.length < PAGES) {
    const size = Math.min(FIRST_PAGE * 2 ** pages.length, LARGEST_PAGE);
    const wanted = view.wantedBlockPage(family, size, after);
    const page = view.answer(wanted);
    if (!page) return { pages, next: wanted, complete: false };
    pages.push(page);

    const last = page.at(-1)?.key;
    const isLastPage = page.length < size || last === undefined;
    if (wrapped && (isLastPage || (start !== undefined && last > start))) return { pages, complete: true };
    if (isLastPage) wrapped = true;
    after = isLastPage ? undefined : last;
  }
  return { pages, complete: false };
}

function startKey({ view, request, pools }: Search): string | undefined {
  const [pool] = pools;
  if (!pool) return undefined;
  const [first] = candidateBlocks(pool.cidr, pool.blockLength, { node: request.node, limit: 1 });
  return first && view.blockKey(first);
}
