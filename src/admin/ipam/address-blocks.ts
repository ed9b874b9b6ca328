/** The block that an address is in, and its allocation there. */
import type { Datastore } from "../../datastore/datastore.ts";
import { type ReadEach, readEach } from "../../datastore/read-each.ts";
import type { Address } from "../../ip/address.ts";
import { blockOf } from "../../ip/block.ts";
import { ordinalIn } from "../../ipam/block.ts";
import { readKeys } from "../../ipam/leaks/read-keys.ts";
import { decodeBlock } from "../../ipam/records.ts";
import { BLOCK_SIZES } from "../../model/block-sizes.ts";
import type { IPAMBlock } from "../../model/ipam-block.ts";
import { blockKey } from "../../model/keys.ts";
import { type Allocation, allocationsOf } from "./blocks.ts";

/** Reads the blocks of every possible size at once: the pool, which has the block size, may be gone. */
export async function blocksOf(store: Datastore, ...addresses: readonly Address[]): Promise<ReadEach<IPAMBlock>> {
  const keys = addresses.flatMap((address) => {
    const { shortest, longest } = BLOCK_SIZES[address.family];
    const lengths = Array.from({ length: longest - shortest + 1 }, (_, index) => shortest + index);
    return lengths.map((length) => blockKey(blockOf(address, length)));
  });
  return readEach(await readKeys(store, [...new Set(keys)]), decodeBlock);
}

export function allocationAt(block: IPAMBlock, address: Address): Allocation | undefined {
  const ordinal = ordinalIn(block, address);
  if (ordinal === undefined || block.allocations[ordinal] === undefined) return undefined;
  return allocationsOf(block).find((each) => each.address.value === address.value);
}
