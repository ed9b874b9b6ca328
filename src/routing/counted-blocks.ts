/**
 * Which blocks count, for routes and for the proof of addresses. Pure.
 *
 * A node may write blocks of its own node (docs/admission.md), and every other node believes them: one inside a block of
 * another node, or around a server, would attract what is sent there.
 *
 *   inside a pool, with the length of its blocks    regular: IPAM creates only such, and two of them never overlap. Counts,
 *                                                   but with host-local pods not inside a pod CIDR of another node
 *   any other                                       its pool was deleted, or created again with other blocks, and its pods
 *                                                   live on: counts unless it overlaps what is known to be of others
 */
import { formatPrefix, type Prefix, prefixCovers, prefixesOverlap } from "../ip/prefix.ts";
import { BLOCK_SIZES } from "../model/block-sizes.ts";
import { precedes } from "../model/pool-order.ts";
import type { RoutedBlock, RoutedPool } from "./facts.ts";

export interface AroundBlock {
  readonly pools: Iterable<Pick<RoutedPool, "prefix" | "blockLength" | "createdAt">>;
  /** Another block that overlaps it. */
  readonly overlapping: (prefix: Prefix) => Prefix | undefined;
  /** What else has addresses in it, for people: `contains the address of node "node-2"`. */
  readonly occupied: (prefix: Prefix) => string | undefined;
  /** The other node that has it in a pod CIDR, if pods of the planned node are host-local. */
  readonly assignedTo: (block: Pick<RoutedBlock, "prefix" | "node">) => string | undefined;
}

/** `undefined` if the block counts. */
export function whyIgnored(block: Pick<RoutedBlock, "prefix" | "node">, around: AroundBlock): string | undefined {
  const { prefix } = block;
  if (isRegular(prefix, around.pools)) {
    const assigned = around.assignedTo(block);
    return assigned && `it is inside a pod CIDR of node "${assigned}"`;
  }
  if (prefix.length < BLOCK_SIZES[prefix.network.family].shortest) return "it is larger than the blocks of any pool";
  const other = around.overlapping(prefix);
  const reason = other === undefined ? around.occupied(prefix) : `overlaps block ${formatPrefix(other)}`;
  return reason === undefined ? undefined : `it is not a block of a pool, and ${reason}`;
}

/**
 * If several pools share addresses with it, the earliest decides, as in IPAM: whoever may create a pool could choose the
 * length of blocks otherwise, or make those of others irregular. Several of the same time must agree.
 */
export function isRegular(block: Prefix, pools: AroundBlock["pools"]): boolean {
  const overlapping = Array.from(pools).filter(({ prefix }) => prefixesOverlap(prefix, block));
  const earliest = overlapping.filter((pool) => overlapping.every((other) => precedes(pool, other)));
  const around = earliest.filter(({ prefix }) => prefixCovers(prefix, block));
  return around.length > 0 && around.every(({ blockLength }) => blockLength === block.length);
}
