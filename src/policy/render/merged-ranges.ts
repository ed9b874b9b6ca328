/** Networks that may overlap or touch -> ranges that do not, as the kernel requires. Pure. */
import { type Address, addressBytes, type Family, stepAddress } from "../../ip/address.ts";
import { comparePrefixes, lastAddress, type Prefix } from "../../ip/prefix.ts";
import type { KeyRange } from "../../linux/nftables/intervals.ts";

export function mergedRanges(prefixes: Iterable<Prefix>, family: Family): readonly KeyRange[] {
  const sorted = [...prefixes].filter(({ network }) => network.family === family).toSorted(comparePrefixes);
  const ranges: { first: Address; last: Address }[] = [];
  for (const prefix of sorted) {
    const first = prefix.network;
    const last = lastAddress(prefix);
    const before = ranges.at(-1);
    const next = before === undefined ? undefined : stepAddress(before.last, 1n);
    // After the last address of all nothing begins.
    if (before !== undefined && (next === undefined || first.value <= next.value)) {
      if (last.value > before.last.value) before.last = last;
    } else ranges.push({ first, last });
  }
  return ranges.map(({ first, last }) => ({ first: addressBytes(first), last: addressBytes(last) }));
}
