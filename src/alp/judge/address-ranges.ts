/** Is an address in one of the networks of a rule? They are sorted and merged once, then searched by halves. Pure. */
import type { Address, Family } from "../../ip/address.ts";
import { mergedRanges } from "../../ip/merged-ranges.ts";
import type { Prefix } from "../../ip/prefix.ts";
import type { AddressRange } from "../../ip/range.ts";

export type AddressRanges = Readonly<Record<Family, readonly AddressRange[]>>;

export function rangesOf(prefixes: readonly Prefix[]): AddressRanges {
  return { 4: mergedRanges(prefixes, 4), 6: mergedRanges(prefixes, 6) };
}

export function isWithin(ranges: AddressRanges, { family, value }: Address): boolean {
  const own = ranges[family];
  let low = 0;
  let high = own.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    const range = own[middle];
    if (range === undefined) return false;
    if (value < range.first.value) high = middle - 1;
    else if (value > range.last.value) low = middle + 1;
    else return true;
  }
  return false;
}
