/** The addresses in a list of prefixes as ranges that neither overlap nor touch: the kernel refuses overlapping ranges. Pure. */
import type { Family } from "./address.ts";
import type { Prefix } from "./prefix.ts";
import { type AddressRange, rangeOfPrefix, rangesOverlap } from "./range.ts";

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

/** What is left of the ranges without those of the second list; each list is in order, without overlaps. */
export function rangesWithout(
  ranges: readonly AddressRange[],
  holes: readonly AddressRange[],
): readonly AddressRange[] {
  return ranges.flatMap((range) => {
    const left: AddressRange[] = [];
    let rest: AddressRange | undefined = range;
    for (const hole of holes) {
      if (rest === undefined || !rangesOverlap(rest, hole)) continue;
      if (hole.first.value > rest.first.value)
        left.push({ first: rest.first, last: { ...hole.first, value: hole.first.value - 1n } });
      rest =
        hole.last.value < rest.last.value
          ? { first: { ...hole.last, value: hole.last.value + 1n }, last: rest.last }
          : undefined;
    }
    return rest === undefined ? left : [...left, rest];
  });
}
