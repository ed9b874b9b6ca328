/**
 * In which order a node looks for a free block in a pool.
 *
 * Every node walks all blocks of a pool, each from its own start and with its
 * own stride, so that nodes that come up together seldom want the same block.
 * The stride is odd and the number of blocks a power of two: no block is
 * visited twice before all were visited once.
 */
import { blockCount, nthBlock } from "../ip/block.ts";
import type { Prefix } from "../ip/prefix.ts";

/** The pool's blocks in this node's order, `limit` at most. */
export function* candidateBlocks(
  pool: Prefix,
  blockLength: number,
  order: { readonly node: string; readonly limit: number },
): Generator<Prefix> {
  const count = blockCount(pool, blockLength);
  if (count === 0n) return;
  const seed = `${order.node}|${pool.network.value}`;
  const start = hash64(seed, FIRST_BASIS) % count;
  const stride = hash64(seed, SECOND_BASIS) | 1n;

  for (let step = 0n; step < count && step < BigInt(order.limit); step++) {
    const block = nthBlock(pool, blockLength, (start + step * stride) % count);
    if (block) yield block;
  }
}

const FIRST_BASIS = 0xcbf29ce484222325n;
const SECOND_BASIS = 0x84222325cbf29ce4n;
const PRIME = 0x100000001b3n;

/** FNV-1a with a final mix: names that differ in their last letter alone end far apart. */
function hash64(text: string, basis: bigint): bigint {
  let hash = basis;
  for (const byte of new TextEncoder().encode(text)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * PRIME);
  hash ^= hash >> 33n;
  hash = BigInt.asUintN(64, hash * 0xff51afd7ed558ccdn);
  return hash ^ (hash >> 33n);
}
