/** The elements of a set of ranges, each by a text that is the same for equal elements. Pure. */
import { type KeyRange, rangeElements } from "../../linux/nftables/intervals.ts";
import type { NftElement } from "../../linux/nftables/set.ts";

/** The ranges must not overlap or touch. */
export function elementsOfRanges(ranges: readonly KeyRange[]): ReadonlyMap<string, NftElement> {
  return new Map(rangeElements(ranges).map((element) => [identityOf(element), element]));
}

/** A range begins and ends at elements that may have the same key. */
function identityOf({ key, interval }: NftElement): string {
  return `${key.toHex()} ${interval ?? "first"}`;
}
