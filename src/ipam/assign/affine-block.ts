/**
 * Assigns an address from this host's own blocks.
 *
 * An affinity is only a claim; the block is authoritative. A claim without a
 * block is completed by creating the block. A claim that was never confirmed, or
 * was about to be deleted, is confirmed if the block names this host. Concurrent
 * changes of the claim lose their race and start again.
 *
 * An address that rests is taken only if no block of this host has one that has
 * rested; then it is taken, and no further block is claimed.
 */

import { prefixCovers } from "../../ip/prefix.ts";
import { hostAffinity } from "../../model/ipam-block.ts";
import { emptyBlock } from "../block.ts";
import type { HostAffinity } from "../records.ts";
import {
  type Choice,
  isRested,
  restedFirst,
  type Search,
  type TakeChoice,
  takeAndClaim,
  takeFrom,
  takeNext,
} from "./choice.ts";
import { unreadCandidates } from "./new-block.ts";

/**
 * If the claims were not read: a block that was read and belongs to this host is enough. The block is authoritative;
 * its claim is looked at when blocks are needed that were not read, for example because all addresses of these rest.
 */
export function fromReadBlocks(search: Search): Choice | undefined {
  if (search.view.knowsAffinities()) return undefined;
  const choice = restedFirst(choicesOfReadBlocks(search));
  return choice && isRested(choice) ? choice : undefined;
}

function* choicesOfReadBlocks(search: Search): Generator<TakeChoice> {
  const { view, request, family, pools } = search;
  for (const pool of pools) {
    for (const known of view.knownBlocks(family)) {
      if (known.block.affinity !== hostAffinity(request.node) || !prefixCovers(pool.cidr, known.block.cidr)) continue;
      const taken = takeNext(search, known.block);
      if (taken) yield takeFrom(search, known, taken);
    }
  }
}

export function fromAffineBlocks(search: Search): Choice | undefined {
  const affinities = usableAffinities(search);
  const choice = restedFirst(choicesOfAffineBlocks(search, affinities));
  if (choice && isRested(choice)) return choice;

  const { view } = search;
  const unread = affinities.filter((each) => view.block(each.cidr).kind === "unknown");
  if (unread.length > 0) {
    const wanted = unread.map((each) => view.wantedBlock(each.cidr));
    // If they are full, a new block is next: its candidates are read in the same round trip.
    return { kind: "read", wanted: choice === undefined ? [...wanted, ...unreadCandidates(search)] : wanted };
  }
  return choice ?? finishClaim(search, affinities);
}

function* choicesOfAffineBlocks(search: Search, affinities: readonly HostAffinity[]): Generator<TakeChoice> {
  for (const affinity of affinities) {
    const choice = fromAffineBlock(search, affinity);
    if (choice) yield choice;
  }
}

/** Those in the usable pools, in the order of the pools. */
function usableAffinities(search: Search): readonly HostAffinity[] {
  const all = search.view.affinities(search.family);
  return search.pools.flatMap((pool) => all.filter((each) => prefixCovers(pool.cidr, each.cidr)));
}

function fromAffineBlock(search: Search, affinity: HostAffinity): TakeChoice | undefined {
  const { view, request } = search;
  const known = view.block(affinity.cidr);
  if (known.kind !== "present" || known.block.affinity !== hostAffinity(request.node)) return undefined;

  const taken = takeNext(search, known.block);
  if (!taken) return undefined;
  return affinity.state === "confirmed"
    ? takeFrom(search, known, taken)
    : takeAndClaim(search, { taken, before: known, affinity });
}

/** Only with the pool's own block length: a claim left by a former pool would overlap other blocks. */
function finishClaim(search: Search, affinities: readonly HostAffinity[]): Choice | undefined {
  const { view, request, sequenceNumber, pools } = search;
  for (const affinity of affinities) {
    const pool = pools.find((each) => prefixCovers(each.cidr, affinity.cidr));
    if (view.block(affinity.cidr).kind !== "absent" || pool?.blockLength !== affinity.cidr.length) continue;
    const block = emptyBlock(affinity.cidr, hostAffinity(request.node), sequenceNumber);
    const taken = takeNext(search, block);
    if (taken) return takeAndClaim(search, { taken, before: { block }, affinity });
  }
  return undefined;
}
