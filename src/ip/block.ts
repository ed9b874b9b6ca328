/**
 * Arithmetic of blocks: a pool is divided into blocks of equal size, and the
 * addresses of a block are numbered (ordinals).
 *
 *   pool 10.0.0.0/24, block length 26:  block 0 = 10.0.0.0/26 … block 3 = 10.0.0.192/26
 *   block 10.0.0.64/26:                 ordinal 0 = 10.0.0.64 … ordinal 63 = 10.0.0.127
 *
 * Block indexes are bigint (an IPv6 pool may have 2^80 blocks); ordinals are
 * numbers (a block has at most 2^32 addresses).
 */
import { type Address, addressBits } from "./address.ts";
import { type Prefix, prefixAround, prefixContains, prefixCovers, prefixSize } from "./prefix.ts";

/** The block of this length that contains the address. */
export function blockOf(address: Address, blockLength: number): Prefix {
  return prefixAround(address, blockLength);
}

/** The number of blocks in the pool; 0 if the pool is smaller than a block. */
export function blockCount(pool: Prefix, blockLength: number): bigint {
  return blockLength < pool.length ? 0n : 1n << BigInt(blockLength - pool.length);
}

/** The pool's block with this index, or `undefined` past its end. */
export function nthBlock(pool: Prefix, blockLength: number, index: bigint): Prefix | undefined {
  if (index < 0n || index >= blockCount(pool, blockLength)) return undefined;
  const { family, value } = pool.network;
  const shift = BigInt(addressBits(family) - blockLength);
  return { network: { family, value: value + (index << shift) }, length: blockLength };
}

/** The index of a block in its pool, or `undefined` if it is not a block of the pool. */
export function blockIndex(pool: Prefix, block: Prefix): bigint | undefined {
  if (!prefixCovers(pool, block)) return undefined;
  const shift = BigInt(addressBits(pool.network.family) - block.length);
  return (block.network.value - pool.network.value) >> shift;
}

/** The prefix's address with this number, or `undefined` past its end. */
export function nthAddress(prefix: Prefix, ordinal: number | bigint): Address | undefined {
  const offset = BigInt(ordinal);
  if (offset < 0n || offset >= prefixSize(prefix)) return undefined;
  return { family: prefix.network.family, value: prefix.network.value + offset };
}

/** The ordinal of an address in its block, or `undefined` if it is not in the block or the ordinal exceeds 32 bits. */
export function ordinalOf(block: Prefix, address: Address): number | undefined {
  if (!prefixContains(block, address)) return undefined;
  const ordinal = address.value - block.network.value;
  return ordinal <= 0xffff_ffffn ? Number(ordinal) : undefined;
}

/** The number of addresses in the block. */
export function blockSize(block: Prefix): number {
  return Number(prefixSize(block));
}
