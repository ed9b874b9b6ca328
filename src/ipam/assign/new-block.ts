/**
 * An address from a block that becomes this host's: one that does not exist
 * yet, or one that belongs to nobody.
 *
 * The blocks of the cluster are not listed here, unless the pool was edited
 * (other-blocks.ts). The node's own candidates
 * are read a bundle at a time; 128 candidates that all exist mean a pool that
 * is full for all practical purposes.
 */
import { counted } from "../../counted.ts";
import type { Wanted } from "../../datastore/datastore.ts";
import { formatPrefix, type Prefix, prefixCovers } from "../../ip/prefix.ts";
import { hostAffinity } from "../../model/ipam-block.ts";
import { quoted } from "../../quote.ts";
import { emptyBlock } from "../block.ts";
import { candidateBlocks } from "../candidates.ts";
import type { Pool } from "../pools.ts";
import type { HostAffinity } from "../records.ts";
import { type Choice, isRested, restedFirst, type Search, type TakeChoice, takeAndClaim, takeNext } from "./choice.ts";
import { otherBlocksIn } from "./other-blocks.ts";

const PROBES_PER_POOL = 128;
/** Of all pools together: where that many exist, looking through what exists is quicker. */
const PROBES = 512;
const FIRST_BUNDLE = 16;
/** Two families and every affine block must fit into one transaction of etcd, which takes 128 operations. */
const NEXT_BUNDLE = 40;

export function fromNewBlock(search: Search): Choice | undefined {
  if (whyNoNewBlock(search)) return undefined;
  const unread = openPools(search).flatMap((pool) => {
    const others = otherBlocksIn(search, pool);
    return others.kind === "unread" ? [others.wanted] : [];
  });
  if (unread.length > 0) return { kind: "read", wanted: unread };
  const choice = restedFirst(claims(search, probes(search)));
  if (choice && isRested(choice)) return choice;
  // Of the candidates that were not read yet, one may have rested.
  const wanted = unreadCandidates(search);
  return wanted.length > 0 ? { kind: "read", wanted } : choice;
}

/** The reason why this host may not claim any more blocks. */
export function whyNoNewBlock(search: Search): string | undefined {
  if (!search.view.configuration().autoAllocateBlocks) return "autoAllocateBlocks is off";
  if (search.pools.length === 0 || openPools(search).length > 0) return undefined;
  const others = search.pools.flatMap((pool) => otherBlocksReason(search, pool) ?? []);
  const full = search.pools.filter((pool) => otherBlocksReason(search, pool) === undefined);
  const limits = full.map((pool) => describeLimit(search, pool)).join("; ");
  const limit = `node ${quoted(search.request.node)} has as many blocks as maxBlocksPerHost allows in one pool: ${limits}`;
  return [...others, ...(full.length === 0 ? [] : [limit])].join("; ");
}

function otherBlocksReason(search: Search, pool: Pool): string | undefined {
  const others = otherBlocksIn(search, pool);
  return others.kind === "found" ? others.reason : undefined;
}

/** The pools of which the host may claim another block: the limit is counted per pool, so that no pool starves another. */
function openPools(search: Search): readonly Pool[] {
  const { maxBlocksPerHost } = search.view.configuration();
  return search.pools.filter(
    (pool) => blocksIn(search, pool).length < maxBlocksPerHost && otherBlocksReason(search, pool) === undefined,
  );
}

function blocksIn({ view, family }: Search, pool: Pool): readonly HostAffinity[] {
  return view.affinities(family).filter(({ cidr }) => prefixCovers(pool.cidr, cidr));
}

const SHOWN_BLOCKS = 3;

function describeLimit(search: Search, pool: Pool): string {
  const names = blocksIn(search, pool).map(({ cidr }) => formatPrefix(cidr));
  const more = names.length > SHOWN_BLOCKS ? ` and ${names.length - SHOWN_BLOCKS} more` : "";
  return `${counted(names.length, "block")} in pool "${pool.name}" (${names.slice(0, SHOWN_BLOCKS).join(", ")}${more})`;
}

/** The next bundle of candidates that were not read yet. */
export function unreadCandidates(search: Search): readonly Wanted[] {
  if (whyNoNewBlock(search)) return [];
  const unread: Wanted[] = [];
  let read = 0;
  for (const candidate of probes(search)) {
    if (search.view.block(candidate).kind === "unknown") unread.push(search.view.wantedBlock(candidate));
    else read += 1;
    if (unread.length >= (read < FIRST_BUNDLE ? FIRST_BUNDLE : NEXT_BUNDLE)) break;
  }
  return unread;
}

/** The first block in the node's order that is known to be free, where every block that exists is known. */
export function fromGap(search: Search, existing: number): Choice | undefined {
  if (whyNoNewBlock(search)) return undefined;
  return restedFirst(claims(search, candidates(search, existing + 1), "absent when unread"));
}

function* claims(search: Search, blocks: Iterable<Prefix>, unread?: "absent when unread"): Generator<TakeChoice> {
  for (const candidate of blocks) {
    const choice = claim(search, candidate, unread);
    if (choice) yield choice;
  }
}

function* probes(search: Search): Generator<Prefix> {
  let left = PROBES;
  for (const candidate of candidates(search, PROBES_PER_POOL)) {
    if (left-- === 0) return;
    yield candidate;
  }
}

function* candidates(search: Search, limit: number): Generator<Prefix> {
  const { node } = search.request;
  const without = search.view.reserved();
  for (const pool of openPools(search)) yield* candidateBlocks(pool.cidr, pool.blockLength, { node, limit, without });
}

function claim(search: Search, candidate: Prefix, unread?: "absent when unread"): TakeChoice | undefined {
  const { view, request, sequenceNumber } = search;
  const known = view.block(candidate);
  if (known.kind === "unknown" && !unread) return undefined;

  const affinity = view.affinity(candidate);
  const owner = hostAffinity(request.node);
  if (known.kind !== "present") {
    const block = emptyBlock(candidate, owner, sequenceNumber);
    const taken = takeNext(search, block);
    return taken && takeAndClaim(search, { taken, before: { block }, affinity });
  }
  if (known.block.affinity !== undefined && known.block.affinity !== owner) return undefined;
  const taken = takeNext(search, { ...known.block, affinity: owner });
  return taken && takeAndClaim(search, { taken, before: known, affinity });
}
