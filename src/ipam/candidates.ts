/**
 * The order in which a node searches a pool for a free block.
 *
 * Every node goes through all blocks of a pool from its own start and with its
 * own stride, so that nodes that start together rarely want the same block.
 * The stride is odd and the number of blocks a power of two: no block is
 * visited twice before all were visited once.
 *
 * Completely reserved blocks are excluded in advance, so that no reservation,
 * however large, can hide the blocks next to it.
 */
import { blockCount, nthBlock } from "../ip/block.ts";
import { type Prefix, prefixCovers, prefixesOverlap, prefixHalves } from "../ip/prefix.ts";

interface Order {
  readonly node: string;
  readonly limit: number;
  /** The reserved ranges. */
  readonly without?: readonly Prefix[];
}

/** The pool's blocks in this node's order, at most `limit`. */
export function* candidateBlocks(pool: Prefix, blockLength: number, order: Order): Generator<Prefix> {
  const whole = (order.without ?? []).filter((each) => each.length <= blockLength);
  const parts = partsBeside(pool, whole);
  const first = parts.length < 2 ? 0 : Number(hash64(order.node, FIRST_BASIS) % BigInt(parts.length));
  let left = order.limit;
  for (const part of [...parts.slice(first), ...parts.slice(0, first)]) {
    for (const block of walk(part, blockLength, { ...order, limit: left })) {
      yield block;
      left -= 1;
    }
  }
}

/** The parts of the range that are not reserved. */
function partsBeside(range: Prefix, reserved: readonly Prefix[]): readonly Prefix[] {
  const inside = reserved.filter((each) => prefixesOverlap(range, each));
  if (inside.some((each) => prefixCovers(each, range))) return [];
  if (inside.length === 0) return [range];
  return prefixHalves(range).flatMap((half) => partsBeside(half, inside));
}

function* walk(range: Prefix, blockLength: number, order: Order): Generator<Prefix> {
  const count = blockCount(range, blockLength);
  if (count === 0n) return;
  const seed = `${order.node}|${range.network.value}`;
  const start = hash64(seed, FIRST_BASIS) % count;
  const stride = hash64(seed, SECOND_BASIS) | 1n;

  for (let step = 0n; step < count && step < BigInt(order.limit); step++) {
    const block = nthBlock(range, blockLength, (start + step * stride) % count);
    if (block) yield block;
  }
}

const FIRST_BASIS = 0xcbf29ce484222325n;
const SECOND_BASIS = 0x84222325cbf29ce4n;
const PRIME = 0x100000001b3n;

/** FNV-1a with a final mix: names that differ only in their last character get very different hashes. */
function hash64(text: string, basis: bigint): bigint {
  let hash = basis;
  for (const byte of new TextEncoder().encode(text)) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * PRIME);
  hash ^= hash >> 33n;
  hash = BigInt.asUintN(64, hash * 0xff51afd7ed558ccdn);
  return hash ^ (hash >> 33n);
}
