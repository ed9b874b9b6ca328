/**
 * Pools that share addresses. The admin tool refuses to create one, but an API server validates one object at a
 * time, so `kubectl apply` can. If their block sizes differ, their blocks would overlap and one address would be
 * assigned twice. So nothing new is assigned from a pool that overlaps an earlier one. Pure.
 */
import { comparePrefixes, formatPrefix, prefixesOverlap } from "../ip/prefix.ts";
import { precedes } from "../model/pool-order.ts";
import type { Pool } from "./pools.ts";

/** The same pools; those that overlap an earlier one say so, and are not used; of two of the same time, neither is. */
export function markOverlapping(pools: readonly Pool[]): readonly Pool[] {
  if (!hasOverlap(pools)) return pools;
  return pools.map((pool) => {
    const other = pools.find((each) => each !== pool && prefixesOverlap(each.cidr, pool.cidr) && precedes(each, pool));
    return other === undefined ? pool : { ...pool, overlaps: describe(other, pool) };
  });
}

/** Sorted, the widest comes first, and a pool that overlaps any other overlaps the one before it. */
function hasOverlap(pools: readonly Pool[]): boolean {
  if (pools.length < 2) return false;
  const sorted = pools.map(({ cidr }) => cidr).sort(comparePrefixes);
  return sorted.some((cidr, index) => {
    const before = sorted[index - 1];
    return before !== undefined && prefixesOverlap(before, cidr);
  });
}

function describe(other: Pool, pool: Pool): string {
  const when = precedes(pool, other) ? "at the same time" : "earlier";
  return `it overlaps pool "${other.name}" (${formatPrefix(other.cidr)}), which was created ${when}`;
}
