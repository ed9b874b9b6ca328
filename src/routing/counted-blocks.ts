/**
 * Which blocks count, for routes and for the proof of addresses. Pure.
 *
 * A node may write blocks of its own node (docs/admission.md), and every other node believes them: one inside a block of
 * another node, or around a server, would attract what is sent there.
 *
 *   inside a pool, with the length of its blocks    counts: IPAM creates only such, and two of them never overlap
 *   any other                                       its pool was deleted, or created again with other blocks, and its pods
 *                                                   live on: counts unless it overlaps what is known to be of others
 */
import { formatPrefix, type Prefix, prefixCovers } from "../ip/prefix.ts";
import { BLOCK_SIZES } from "../model/block-sizes.ts";
import type { RoutedPool } from "./facts.ts";

export interface AroundBlock {
  readonly pools: Iterable<Pick<RoutedPool, "prefix" | "blockLength">>;
  /** Another block that overlaps it. */
  readonly overlapping: (prefix: Prefix) => Prefix | undefined;
  /** What else has addresses in it, for people: `contains the address of node "node-2"`. */
  readonly occupied: (prefix: Prefix) => string | undefined;
}

/** `undefined` if the block counts. */
export function whyIgnored(block: Prefix, { pools, overlapping, occupied }: AroundBlock): string | undefined {
  if (isRegular(block, pools)) return undefined;
  if (block.length < BLOCK_SIZES[block.network.family].shortest) return "it is larger than the blocks of any pool";
  const other = overlapping(block);
  const reason = other === undefined ? occupied(block) : `overlaps block ${formatPrefix(other)}`;
  return reason === undefined ? undefined : `it is not a block of a pool, and ${reason}`;
}

/** If several pools contain it, all of them must agree: whoever may create a pool could choose the length of blocks otherwise. */
export function isRegular(block: Prefix, pools: AroundBlock["pools"]): boolean {
  let isInPool = false;
  for (const { prefix, blockLength } of pools) {
    if (!prefixCovers(prefix, block)) continue;
    if (blockLength !== block.length) return false;
    isInPool = true;
  }
  return isInPool;
}
