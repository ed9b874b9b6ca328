/** The addresses in a list of prefixes as ranges that neither overlap nor touch: the kernel refuses overlapping ranges. Pure. */
import type { Family } from "./address.ts";
import type { Prefix } from "./prefix.ts";
import { type AddressRange, rangeOfPrefix } from "./range.ts";

/** Those of the family, in order. */
export function mergedRanges(prefixes: readonly Prefix[], family: Family): readonly AddressRange[] {
  const sorted = prefixes
    .filter(({ network }) => network.family === family)
    .map(rangeOfPrefix)
    .sort((left, right) => (left.first.value < right.first.value ? -1 : 1));
  const merged: AddressRange[] = [];
  for (const range of sorted) {
    const before = merged.at(-1);
    if (before === undefined || range.first.value > before.last.value + 1n) merged.push(range);
    else if (range.last.value > before.last.value)
      merged[merged.length - 1] = { first: before.first, last: range.last };
  }
  return merged;
}
