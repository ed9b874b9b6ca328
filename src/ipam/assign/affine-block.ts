/**
 * Assigns an address from this host's own blocks.
 *
 * An affinity is only a claim; the block is authoritative. A claim without a
 * block is completed by creating the block. A claim that was never confirmed, or
 * was about to be deleted, is confirmed if the block names this host. Concurrent
 * changes of the claim lose their race and start again.
 */

import { prefixCovers } from "../../ip/prefix.ts";
import { hostAffinity } from "../../model/ipam-block.ts";
import { emptyBlock } from "../block.ts";
import type { HostAffinity } from "../records.ts";
import { type Choice, type Search, takeAndClaim, takeFrom, takeNext } from "./choice.ts";
import { unreadCandidates } from "./new-block.ts";

/**
 * If the claims were not read: a block that was read and belongs to this host is enough. The block is authoritative;
 * its claim is looked at when blocks are needed that were not read.
 */
export function fromReadBlocks(search: Search): Choice | undefined {
  const { view, request, family, pools } = search;
  if (view.knowsAffinities()) return undefined;
  for (const pool of pools) {
    for (const known of view.knownBlocks(family)) {
      if (known.block.affinity !== hostAffinity(request.node) || !prefixCovers(pool.cidr, known.block.cidr)) continue;
      const taken = takeNext(search, known.block);
      if (taken) return takeFrom(search, known, taken);
    }
  }
  return undefined;
}

export function fromAffineBlocks(search: Search): Choice | undefined {
  const affinities = usableAffinities(search);
  for (const affinity of affinities) {
    const choice = fromAffineBlock(search, affinity);
    if (choice) return choice;
  }

  const { view } = search;
  const unread = affinities.filter((each) => view.block(each.cidr).kind === "unknown");
  if (unread.length > 0) {
    // If they are full, a new block is next: its candidates are read in the same round trip.
    const wanted = unread.map((each) => view.wantedBlock(each.cidr));
    return { kind: "read", wanted: [...wanted, ...unreadCandidates(search)] };
  }
  return finishClaim(search, affinities);
}

/** Those in the usable pools, in the order of the pools. */
function usableAffinities(search: Search): readonly HostAffinity[] {
  const all = search.view.affinities(search.family);
  return search.pools.flatMap((pool) => all.filter((each) => prefixCovers(pool.cidr, each.cidr)));
}

function fromAffineBlock(search: Search, affinity: HostAffinity): Choice | undefined {
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
