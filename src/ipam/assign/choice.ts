/** What a search for one address works with, and what it may answer. */
import type { Change, Wanted } from "../../datastore/datastore.ts";
import type { Family } from "../../ip/address.ts";
import { type Prefix, prefixCovers } from "../../ip/prefix.ts";
import type { BlockAttribute, IPAMBlock } from "../../model/ipam-block.ts";
import type { Taken } from "../block.ts";
import type { Pool } from "../pools.ts";
import { affinityChange, blockChange, type HostAffinity } from "../records.ts";
import type { AssignRequest } from "../request.ts";
import type { KnownBlock, View } from "../view.ts";

export interface Search {
  readonly view: View;
  readonly request: AssignRequest;
  readonly family: Family;
  /** The pools that may serve, the preferred first. */
  readonly pools: readonly Pool[];
  readonly attributes: BlockAttribute;
  /** Where the sequence numbers of a new block begin. */
  readonly sequenceNumber: bigint;
}

/** One way to an address answers a choice, or `undefined` when it leads nowhere. */
export type Choice =
  | { readonly kind: "held"; readonly block: IPAMBlock; readonly ordinal: number }
  | { readonly kind: "take"; readonly taken: Taken; readonly changes: readonly Change[] }
  | { readonly kind: "read"; readonly wanted: readonly Wanted[] };

/** An address of a block that exists, whoever it is affine to. */
export function takeFrom(search: Search, known: KnownBlock, taken: Taken): Choice {
  return {
    kind: "take",
    taken,
    changes: [...poolGuard(search, known.block.cidr), blockChange(taken.block, known.revision)],
  };
}

/**
 * An address of a block that becomes, or is confirmed as, this host's: the
 * affinity is written before the block, so that even a store that stops
 * between the two leaves a claim that the next process finishes.
 */
export function takeAndClaim(
  search: Search,
  claim: { readonly taken: Taken; readonly revision: string | undefined; readonly affinity: HostAffinity | undefined },
): Choice {
  const { block } = claim.taken;
  const affinity = affinityChange(search.request.node, block.cidr, claim.affinity);
  return {
    kind: "take",
    taken: claim.taken,
    changes: [affinity, ...poolGuard(search, block.cidr), blockChange(block, claim.revision)],
  };
}

/**
 * Nothing is given of a pool that changed since it was read: one that was
 * disabled meanwhile, or is being deleted, or no longer selects the node.
 */
function poolGuard({ view }: Search, cidr: Prefix): readonly Change[] {
  const pool = view.pools().find((each) => prefixCovers(each.cidr, cidr));
  return pool ? [{ kind: "expect", key: pool.key, revision: pool.revision }] : [];
}

export function findAffinity(search: Search, cidr: Prefix): HostAffinity | undefined {
  return search.view.affinities(search.family).find((each) => each.cidr.network.value === cidr.network.value);
}
