/** What a search for one address works with, and what it may answer. */
import type { Change, OrderedChange, Wanted } from "../../datastore/datastore.ts";
import type { Address, Family } from "../../ip/address.ts";
import { type Prefix, prefixCovers } from "../../ip/prefix.ts";
import { type BlockAttribute, hostAffinity, type IPAMBlock } from "../../model/ipam-block.ts";
import { assignNext, type Taken } from "../block.ts";
import type { Pool } from "../pools.ts";
import {
  affinityChange,
  affinityRewrite,
  blockChange,
  blockRewrite,
  borrowingChange,
  type HostAffinity,
} from "../records.ts";
import type { AssignRequest } from "../request.ts";
import { withCooldown } from "../rest.ts";
import type { KnownBlock, View } from "../view.ts";

export interface Search {
  readonly view: View;
  readonly request: AssignRequest;
  readonly family: Family;
  /** The pools that may serve, the preferred first. */
  readonly pools: readonly Pool[];
  /** Why pools that select the node do not serve the request. */
  readonly passedOver?: () => readonly string[];
  /** Whether the address is one of this host, or of its gateway. */
  readonly isHostAddress: (address: Address) => boolean;
  readonly attributes: BlockAttribute;
  /** The time of the datastore. */
  readonly now: Date;
  /** Where the sequence numbers of a new block begin. */
  readonly sequenceNumber: bigint;
}

/** One way to an address returns a choice, or `undefined` when it leads nowhere. */
export type Choice =
  | { readonly kind: "held"; readonly block: IPAMBlock; readonly ordinal: number }
  | TakeChoice
  | { readonly kind: "read"; readonly wanted: readonly Wanted[] };

export interface TakeChoice {
  readonly kind: "take";
  readonly taken: Taken;
  readonly changes: TakeChanges;
  /** The owner had the address already, recorded for this node. */
  readonly formerNode?: string;
  /** The owner had the address already, for this node. */
  readonly wasHeld?: true;
  /** It waited for the identity that it is kept for. */
  readonly waited?: true;
}

/** In this order, with the handle counted up before the address is taken. */
export interface TakeChanges {
  /** Makes the claim, and an empty block if there is none; or records that the address is borrowed. */
  readonly claim: readonly OrderedChange[];
  /** Takes the address. */
  readonly take: readonly OrderedChange[];
  /** Confirms the claim. */
  readonly confirm: readonly OrderedChange[];
}

/** Takes the next address of the block that may be assigned on this host. */
export function takeNext({ view, attributes, now, isHostAddress }: Search, block: IPAMBlock): Taken | undefined {
  return assignNext(withCooldown(block, view.cooldownOf(block)), attributes, {
    now,
    reserved: view.reserved(),
    isUnusable: isHostAddress,
  });
}

/** The first one that takes an address that has rested; else the one whose address has rested the longest. */
export function restedFirst(choices: Iterable<TakeChoice>): TakeChoice | undefined {
  let longest: TakeChoice | undefined;
  for (const choice of choices) {
    if (isRested(choice)) return choice;
    if (longest === undefined || restingSince(choice) < restingSince(longest)) longest = choice;
  }
  return longest;
}

export function isRested({ taken }: TakeChoice): boolean {
  return taken.restingSince === undefined;
}

function restingSince({ taken }: TakeChoice): number {
  return taken.restingSince ?? 0;
}

/** An address of a block that exists, whoever it is affine to. */
export function takeFrom(search: Search, known: KnownBlock, taken: Taken): TakeChoice {
  const { affinity, cidr } = known.block;
  const { node } = search.request;
  const claim = affinity === hostAffinity(node) ? [] : [borrowingChange({ node, cidr })];
  const take = [...poolGuard(search, cidr), blockChange(taken.block, known.revision)];
  return { kind: "take", taken, changes: { claim, take, confirm: [] } };
}

export interface Claim {
  readonly taken: Taken;
  /** The block before the address is taken; with no revision where it does not exist yet. */
  readonly before: { readonly block: IPAMBlock; readonly revision?: string };
  readonly affinity: HostAffinity | undefined;
}

/**
 * An address of a block that becomes, or is confirmed as, this host's.
 *
 *   claim pending -> empty block -> (handle) -> address -> claim confirmed
 *
 * The claim comes before the block says whose it is, and is confirmed only after a write of the block: whoever ends
 * the claim at the same time loses a race on one of the two. A new block is created empty, so that an address is only
 * ever taken of a block at a known revision (handle.ts rests on that).
 */
export function takeAndClaim(search: Search, { taken, before, affinity }: Claim): TakeChoice {
  const { block } = taken;
  const owner = { node: search.request.node, cidr: block.cidr };
  const isOurs = before.revision !== undefined && before.block.affinity === block.affinity;
  const pending = isOurs || affinity?.state === "pending" ? [] : [affinityChange(owner, "pending", affinity?.revision)];
  const guard = poolGuard(search, block.cidr);
  const confirm =
    pending.length > 0 ? affinityRewrite(owner, "confirmed") : affinityChange(owner, "confirmed", affinity?.revision);
  const changes =
    before.revision === undefined
      ? { claim: [...pending, ...guard, blockChange(before.block, undefined)], take: [blockRewrite(block)] }
      : { claim: pending, take: [...guard, blockChange(block, before.revision)] };
  return { kind: "take", taken, changes: { ...changes, confirm: [confirm] } };
}

/**
 * Nothing is given of a pool that changed since it was read: one that was
 * disabled meanwhile, or is being deleted, or no longer selects the node. On a
 * datastore that commits one object at a time this is a check, no guard.
 */
function poolGuard({ view }: Search, cidr: Prefix): readonly Change[] {
  const pool = view.pools().find((each) => prefixCovers(each.cidr, cidr));
  return pool ? [{ kind: "expect", key: pool.key, revision: pool.revision }] : [];
}
