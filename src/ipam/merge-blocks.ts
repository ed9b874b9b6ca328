/**
 * How blocks that overlap become blocks of one size that do not. Pure.
 *
 *   10.0.0.0/26   ·a······b·······   (node n1)        10.0.0.0/28   ·a·c   (node n2, as before)
 *   10.0.0.0/28   ···c               (node n2)   ->   10.0.0.16/28  ··b·   (node n1)
 *
 * Every address stays allocated to its owner, with its sequence number. If two blocks
 * have an address allocated to different owners, nobody can tell whose it is.
 */
import type { Address } from "../ip/address.ts";
import { blockOf } from "../ip/block.ts";
import { comparePrefixes, isSamePrefix, type Prefix } from "../ip/prefix.ts";
import type { BlockAttribute, IPAMBlock } from "../model/ipam-block.ts";
import { addressAt, assignOrdinal, attributesOf, emptyBlock, isAllocated, ordinalIn } from "./block.ts";

export interface Merged {
  readonly kind: "merged";
  /** The blocks of the wanted size, as they are afterwards; the first is that of the lowest addresses. */
  readonly blocks: readonly IPAMBlock[];
  /** Blocks of other sizes: all their addresses are in `blocks`. */
  readonly surplus: readonly IPAMBlock[];
}

/** An address that has two owners. */
export interface Contradiction {
  readonly kind: "contradiction";
  readonly address: Address;
  readonly handles: readonly string[];
}

/** `overlapping`: the blocks of one range of addresses. `length`: of the blocks that are to remain. */
export function mergeBlocks(overlapping: readonly IPAMBlock[], length: number): Merged | Contradiction {
  const kept = overlapping.filter(({ cidr }) => cidr.length === length);
  const surplus = overlapping.filter(({ cidr }) => cidr.length !== length);
  let blocks = kept;
  for (const source of surplus) {
    for (const ordinal of source.allocations.keys()) {
      if (!isAllocated(source, ordinal)) continue;
      const address = addressAt(source, ordinal);
      const cidr = blockOf(address, length);
      const target = blockAmong(blocks, cidr) ?? emptyBlock(cidr, source.affinity, source.sequenceNumber);
      const moved = withAllocation(target, address, { source, ordinal });
      if (!moved) return contradiction(address, overlapping);
      blocks = [...blocks.filter((block) => !isSamePrefix(block.cidr, cidr)), moved];
    }
  }
  return { kind: "merged", blocks: [...blocks].sort((left, right) => comparePrefixes(left.cidr, right.cidr)), surplus };
}

/** The target with the allocation of the source; `undefined` if the target has it allocated to another owner. */
function withAllocation(
  target: IPAMBlock,
  address: Address,
  { source, ordinal }: { readonly source: IPAMBlock; readonly ordinal: number },
): IPAMBlock | undefined {
  const attributes = attributesOf(source, ordinal);
  const place = ordinalIn(target, address);
  if (attributes === undefined || place === undefined) return undefined;
  if (isAllocated(target, place)) return isSameOwner(attributesOf(target, place), attributes) ? target : undefined;
  const taken = assignOrdinal(target, place, attributes)?.block;
  if (!taken) return undefined;
  const { [place]: _, ...others } = taken.sequenceNumberForAllocation;
  const given = source.sequenceNumberForAllocation[ordinal];
  const isLater = given !== undefined && given >= taken.sequenceNumber;
  return {
    ...taken,
    sequenceNumber: isLater ? given + 1n : taken.sequenceNumber,
    sequenceNumberForAllocation: given === undefined ? others : { ...others, [place]: given },
  };
}

function contradiction(address: Address, blocks: readonly IPAMBlock[]): Contradiction {
  const handles = blocks.flatMap((block) => {
    const ordinal = ordinalIn(block, address);
    return ordinal === undefined ? [] : (attributesOf(block, ordinal)?.handleId ?? []);
  });
  return { kind: "contradiction", address, handles: [...new Set(handles)].sort() };
}

function blockAmong(blocks: readonly IPAMBlock[], cidr: Prefix): IPAMBlock | undefined {
  return blocks.find((block) => isSamePrefix(block.cidr, cidr));
}

/** The time of a copy that was interrupted is the same. */
function isSameOwner(left: BlockAttribute | undefined, right: BlockAttribute): boolean {
  return Bun.deepEquals(left, right);
}
