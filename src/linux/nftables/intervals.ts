/**
 * Ranges as elements of a set that holds intervals: where a range starts, and
 * the first key behind it.
 *
 * Ranges must not overlap: the kernel refuses them, and merging in the kernel
 * would make a member impossible to delete.
 */
import { addressBytes } from "../../ip/address.ts";
import { lastAddress, type Prefix } from "../../ip/prefix.ts";
import type { NftElement } from "./set.ts";

/** Both ends belong to the range. */
export interface KeyRange {
  readonly first: Uint8Array;
  readonly last: Uint8Array;
}

export function rangeElements(ranges: readonly KeyRange[]): NftElement[] {
  return ranges.flatMap(({ first, last }): NftElement[] => {
    const behind = successor(last);
    if (behind === undefined) return [{ key: first, interval: "open" }];
    return [{ key: first }, { key: behind, interval: "end" }];
  });
}

export function prefixElements(prefixes: readonly Prefix[]): NftElement[] {
  return rangeElements(
    prefixes.map((prefix) => ({ first: addressBytes(prefix.network), last: addressBytes(lastAddress(prefix)) })),
  );
}

/** The key plus one; `undefined` behind the last. */
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
