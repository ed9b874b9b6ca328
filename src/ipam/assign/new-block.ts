/**
 * An address from a block that becomes this host's: one that does not exist
 * yet, or one that belongs to nobody.
 *
 * The blocks of the cluster are never listed here. The node's own candidates
 * are read a bundle at a time; 128 candidates that all exist mean a pool that
 * is full for all practical purposes.
 */
import { counted } from "../../counted.ts";
import type { Wanted } from "../../datastore/datastore.ts";
import type { Prefix } from "../../ip/prefix.ts";
import { hostAffinity } from "../../model/ipam-block.ts";
import { quoted } from "../../quote.ts";
import { assignNext, emptyBlock } from "../block.ts";
import { candidateBlocks } from "../candidates.ts";
import { type Choice, type Search, takeAndClaim } from "./choice.ts";

const PROBES_PER_POOL = 128;
/** Of all pools together: where that many exist, looking through what exists is quicker. */
const PROBES = 512;
const FIRST_BUNDLE = 16;
/** Two families and every affine block must fit into one transaction of etcd, which takes 128 operations. */
const NEXT_BUNDLE = 40;

export function fromNewBlock(search: Search): Choice | undefined {
  if (whyNoNewBlock(search)) return undefined;
  for (const candidate of probes(search)) {
    const choice = claim(search, candidate);
    if (choice) return choice;
  }
  const wanted = unreadCandidates(search);
  return wanted.length > 0 ? { kind: "read", wanted } : undefined;
}

/** The reason for which this host may claim no more blocks. */
export function whyNoNewBlock({ view, request, family }: Search): string | undefined {
  const { autoAllocateBlocks, maxBlocksPerHost } = view.configuration();
  if (!autoAllocateBlocks) return "autoAllocateBlocks is off";
  if (view.affinities(family).length < maxBlocksPerHost) return undefined;
  return `node ${quoted(request.node)} has its ${counted(maxBlocksPerHost, "block")} (maxBlocksPerHost)`;
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
  for (const candidate of candidates(search, existing + 1)) {
    const choice = claim(search, candidate, "absent when unread");
    if (choice) return choice;
  }
  return undefined;
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
  for (const pool of search.pools) yield* candidateBlocks(pool.cidr, pool.blockLength, { node, limit, without });
}

function claim(search: Search, candidate: Prefix, unread?: "absent when unread"): Choice | undefined {
  const { view, request, attributes, sequenceNumber } = search;
  const known = view.block(candidate);
  if (known.kind === "unknown" && !unread) return undefined;

  const affinity = view.affinity(candidate);
  const owner = hostAffinity(request.node);
  if (known.kind !== "present") {
    const block = emptyBlock(candidate, owner, sequenceNumber);
    const taken = assignNext(block, attributes, view.reserved());
    return taken && takeAndClaim(search, { taken, before: { block }, affinity });
  }
  if (known.block.affinity !== undefined && known.block.affinity !== owner) return undefined;
  const taken = assignNext({ ...known.block, affinity: owner }, attributes, view.reserved());
  return taken && takeAndClaim(search, { taken, before: known, affinity });
}
