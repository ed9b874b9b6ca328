/**
 * What routes need to know of an IPAM block. Pure.
 *
 * Every ADD in the cluster writes a block, and every node reads it: the result is small and is almost always equal to
 * the one before.
 */
import { formatAddress } from "../ip/address.ts";
import { nthAddress } from "../ip/block.ts";
import { affineNode, type IPAMBlock, NODE_ATTRIBUTE } from "../model/ipam-block.ts";
import type { BorrowedAddress, RoutedBlock } from "./facts.ts";

const NONE: ReadonlyMap<string, BorrowedAddress> = new Map();

export function routedBlock(block: IPAMBlock): RoutedBlock {
  const node = affineNode(block);
  return { prefix: block.cidr, node, borrowed: borrowedFrom(block, node) };
}

export function isSameBlock(left: RoutedBlock, right: RoutedBlock): boolean {
  if (left.node !== right.node || left.borrowed.size !== right.borrowed.size) return false;
  for (const [text, { node }] of left.borrowed) if (right.borrowed.get(text)?.node !== node) return false;
  return true;
}

/** An address without a recorded node belongs to the node of the block. */
function borrowedFrom(block: IPAMBlock, owner: string | undefined): ReadonlyMap<string, BorrowedAddress> {
  const { attributes, allocations, cidr } = block;
  const holders = attributes.map(({ secondary }) => secondary[NODE_ATTRIBUTE]);
  if (holders.every((holder) => holder === undefined || holder === owner)) return NONE;

  const borrowed = new Map<string, BorrowedAddress>();
  for (const [ordinal, index] of allocations.entries()) {
    const node = index === undefined ? undefined : holders[index];
    const address = node === undefined || node === owner ? undefined : nthAddress(cidr, ordinal);
    if (node !== undefined && address !== undefined) borrowed.set(formatAddress(address), { address, node });
  }
  return borrowed;
}
