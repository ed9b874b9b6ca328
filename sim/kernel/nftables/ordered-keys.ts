/** The elements of an interval set, from the greatest key to the least. Pure. */
import type { NftElement } from "../../../src/linux/nftables/set.ts";

/** Before all that are not greater; of two with the same key, the end of a range is the lesser. */
export function placeOf(ordered: readonly NftElement[], element: NftElement): number {
  let [low, high] = [0, ordered.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const other = ordered[middle];
    if (other !== undefined && compareEnds(other, element) > 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

function compareEnds(left: NftElement, right: NftElement): number {
  return Buffer.compare(left.key, right.key) || Number(right.interval === "end") - Number(left.interval === "end");
}
