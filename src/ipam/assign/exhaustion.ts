/** The error for exhausted pools: which pools were tried, how full they are, and which setting excluded the rest. */
import { PluginError } from "../../errors.ts";
import { formatPrefix, prefixCovers, prefixSize } from "../../ip/prefix.ts";
import { quoted } from "../../quote.ts";
import type { Pool } from "../pools.ts";
import type { Search } from "./choice.ts";
import { whyNoNewBlock } from "./new-block.ts";

export function exhausted(search: Search, seen: { readonly complete: boolean }): PluginError {
  const pools = search.pools.map((pool) => describePool(search, pool, seen.complete ? "" : "at least "));
  const reasons = [
    whyNoNewBlock(search) ?? [],
    search.view.configuration().strictAffinity ? "strictAffinity is on: blocks of other nodes are not used" : [],
    search.view.reserved().length > 0 ? "reserved addresses are not used" : [],
    seen.complete ? [] : "the pools hold more blocks than one search looks through",
  ].flat();
  return new PluginError(
    "addresses-exhausted",
    `Cannot assign an IPv${search.family} address to ${quoted(search.request.handle)}: no free address in ${pools.join(", ")}`,
    { details: reasons.join("; ") },
  );
}

function describePool({ view, family }: Search, pool: Pool, atLeast: string): string {
  let used = 0;
  for (const { block } of view.knownBlocks(family)) {
    if (prefixCovers(pool.cidr, block.cidr)) used += block.allocations.length - block.unallocated.length;
  }
  return `pool "${pool.name}" ${formatPrefix(pool.cidr)} (${atLeast}${used} of ${prefixSize(pool.cidr)} used)`;
}
