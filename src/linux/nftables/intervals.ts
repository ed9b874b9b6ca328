/**
 * Ranges as elements of an interval set: the first key of a range, and the first key
 * after it.
 *
 * Ranges must not overlap: the kernel refuses them, and if the kernel merged them, a
 * single range could not be deleted.
 */
import { addressBytes } from "../../ip/address.ts";
import type { Prefix } from "../../ip/prefix.ts";
import { type AddressRange, rangeOfPrefix } from "../../ip/range.ts";
import type { NftElement } from "./set.ts";

/** Both ends are part of the range. */
export interface KeyRange {
  readonly first: Uint8Array;
  readonly last: Uint8Array;
}

/** The keys of the first and the last address. */
export function keyRange({ first, last }: AddressRange): KeyRange {
  return { first: addressBytes(first), last: addressBytes(last) };
}

export function rangeElements(ranges: readonly KeyRange[]): NftElement[] {
  return ranges.flatMap(({ first, last }): NftElement[] => {
    const next = successor(last);
    if (next === undefined) return [{ key: first, interval: "open" }];
    return [{ key: first }, { key: next, interval: "end" }];
  });
}

export function prefixElements(prefixes: readonly Prefix[]): NftElement[] {
  return rangeElements(prefixes.map((prefix) => keyRange(rangeOfPrefix(prefix))));
}

/**
 * The elements of an interval set in the order in which the kernel accepts them, which may be given in any order: the end
 * of each range follows its beginning. Linux 6.18 refuses to add or to delete ranges in another order (EEXIST, ENOENT),
 * and lists their elements backwards.
 */
export function inRangeOrder(elements: Iterable<NftElement>): readonly NftElement[] {
  // Where one range ends and the next begins at the same key, the end comes first.
  return [...elements].toSorted(
    (left, right) =>
      Buffer.compare(left.key, right.key) || Number(right.interval === "end") - Number(left.interval === "end"),
  );
}

/** Whether a key is in one of the ranges of these elements of an interval set, which may be in any order. */
export function containsKey(elements: Iterable<NftElement>): (key: Uint8Array) => boolean {
  const sorted = inRangeOrder(elements);
  return (key) => {
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (Buffer.compare(sorted[middle]?.key ?? key, key) <= 0) low = middle + 1;
      else high = middle;
    }
    const last = sorted[low - 1];
    return last !== undefined && last.interval !== "end";
  };
}

/** The key plus one; `undefined` after the last key. */
function successor(key: Uint8Array): Uint8Array | undefined {
  const next = key.slice();
  for (let index = next.length - 1; index >= 0; index--) {
    const byte = next[index] ?? 0;
    if (byte < 255) {
      next[index] = byte + 1;
      return next;
    }
    next[index] = 0;
  }
  return undefined;
}
