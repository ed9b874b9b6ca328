/**
 * What routes need to know of an IPAM block. Pure.
 *
 * Every ADD in the cluster writes a block, and every node reads it: the result is small and is almost always equal to
 * the one before.
 */
import { formatAddress } from "../ip/address.ts";
import { nthAddress } from "../ip/block.ts";
import { affineNode, type BlockAttribute, type IPAMBlock, NODE_ATTRIBUTE } from "../model/ipam-block.ts";
import { nodeOfTunnelHandle, tunnelTitle } from "../model/tunnel-address.ts";
import type { BorrowedAddress, RoutedBlock } from "./facts.ts";

const NONE: ReadonlyMap<string, BorrowedAddress> = new Map();

export function routedBlock(block: IPAMBlock): RoutedBlock {
  const node = affineNode(block);
  const holders = block.attributes.map(holderOf);
  const tunnels = tunnelsIn(block, holders, node);
  const assigned = assignedIn(block);
  const unnamed = addressesOf(block, (index) => isUnnamed(block.attributes[index]));
  return {
    prefix: block.cidr,
    node,
    borrowed: borrowedFrom(block, holders, node),
    ...(tunnels.size === 0 ? {} : { tunnels }),
    ...(assigned === 0n ? {} : { assigned }),
    ...(unnamed.length === 0 ? {} : { unnamed: new Set(unnamed.map(formatAddress)) }),
  };
}

/** For routes to blocks; single addresses depend on `assigned` too. */
export function isSameBlock(left: RoutedBlock, right: RoutedBlock): boolean {
  if (left.node !== right.node || left.borrowed.size !== right.borrowed.size) return false;
  for (const [text, { node }] of left.borrowed) if (right.borrowed.get(text)?.node !== node) return false;
  return Bun.deepEquals(left.tunnels, right.tunnels) && Bun.deepEquals(left.unnamed, right.unnamed);
}

/** As a number of as many bits as the block has addresses: every agent keeps it for all blocks of the cluster. */
function assignedIn({ allocations }: IPAMBlock): bigint {
  if (allocations.every((index) => index === undefined)) return 0n;
  return BigInt(
    `0b${allocations
      .map((index) => (index === undefined ? "0" : "1"))
      .toReversed()
      .join("")}`,
  );
}

/** Former releases recorded no node for the address of a tunnel, but its handle names it. */
function holderOf({ handleId, secondary }: BlockAttribute): string | undefined {
  return secondary[NODE_ATTRIBUTE] ?? nodeOfTunnelHandle(handleId);
}

/** As the oldest releases recorded addresses of tunnels: nothing says whose they are. */
function isUnnamed(attribute: BlockAttribute | undefined): boolean {
  if (attribute?.handleId !== undefined) return false;
  for (const _ in attribute?.secondary) return false;
  return attribute !== undefined;
}

/** An address without a recorded node belongs to the node of the block. */
function borrowedFrom(
  block: IPAMBlock,
  holders: readonly (string | undefined)[],
  owner: string | undefined,
): ReadonlyMap<string, BorrowedAddress> {
  if (holders.every((holder) => holder === undefined || holder === owner)) return NONE;

  const borrowed = new Map<string, BorrowedAddress>();
  for (const [ordinal, index] of block.allocations.entries()) {
    const node = index === undefined ? undefined : holders[index];
    const address = node === undefined || node === owner ? undefined : nthAddress(block.cidr, ordinal);
    if (node !== undefined && address !== undefined) borrowed.set(formatAddress(address), { address, node });
  }
  return borrowed;
}

function tunnelsIn(
  block: IPAMBlock,
  holders: readonly (string | undefined)[],
  owner: string | undefined,
): ReadonlyMap<string, string> {
  const tunnels = new Map<string, string>();
  for (const [index, { handleId, secondary }] of block.attributes.entries()) {
    const node = holders[index] ?? owner;
    if (node === undefined || (tunnelTitle(secondary) === undefined && nodeOfTunnelHandle(handleId) === undefined))
      continue;
    for (const address of addressesOf(block, (each) => each === index)) tunnels.set(formatAddress(address), node);
  }
  return tunnels;
}

function addressesOf({ allocations, attributes, cidr }: IPAMBlock, isWanted: (index: number) => boolean) {
  if (!attributes.some((_, index) => isWanted(index))) return [];
  return allocations.flatMap((index, ordinal) =>
    index !== undefined && isWanted(index) ? (nthAddress(cidr, ordinal) ?? []) : [],
  );
}
