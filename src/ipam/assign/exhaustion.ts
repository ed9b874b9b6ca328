/** The error for exhausted pools: which pools were tried, how full they are, and which setting excluded the rest. */
import { PluginError } from "../../errors.ts";
import { formatAddress } from "../../ip/address.ts";
import { formatPrefix, prefixCovers, prefixSize } from "../../ip/prefix.ts";
import { quoted } from "../../quote.ts";
import { addressAt } from "../block.ts";
import type { Pool } from "../pools.ts";
import type { Search } from "./choice.ts";
import { whyNoNewBlock } from "./new-block.ts";

export function exhausted(search: Search, seen: { readonly complete: boolean }): PluginError {
  const pools = search.pools.map((pool) => describePool(search, pool, seen.complete ? "" : "at least "));
  const reasons = [
    whyNoNewBlock(search) ?? [],
    search.view.configuration().strictAffinity ? "strictAffinity is on: blocks of other nodes are not used" : [],
    search.view.reserved().length > 0 ? "reserved addresses are not used" : [],
    describeHostAddresses(search),
    search.passedOver?.() ?? [],
    seen.complete ? [] : "the pools hold more blocks than one search looks through",
  ].flat();
  return new PluginError(
    "addresses-exhausted",
    `Cannot assign an IPv${search.family} address to ${quoted(search.request.handle)}: no free address in ${pools.join(", ")}`,
    { details: reasons.join("; ") },
  );
}

/** Each is asked of the kernel: only as many as a reader needs. */
const SHOWN_HOST_ADDRESSES = 5;
const MOST_ASKED = 64;

function describeHostAddresses({ view, family, pools, isHostAddress }: Search): readonly string[] {
  const own = [...view.knownBlocks(family)]
    .filter(({ block }) => pools.some(({ cidr }) => prefixCovers(cidr, block.cidr)))
    .flatMap(({ block }) => block.unallocated.map((ordinal) => addressAt(block, ordinal)))
    .slice(0, MOST_ASKED)
    .filter(isHostAddress)
    .slice(0, SHOWN_HOST_ADDRESSES);
  if (own.length === 0) return [];
  return [`addresses of this host and its gateway are not used: ${own.map(formatAddress).join(", ")}`];
}

function describePool({ view, family }: Search, pool: Pool, atLeast: string): string {
  let used = 0;
  for (const { block } of view.knownBlocks(family)) {
    if (prefixCovers(pool.cidr, block.cidr)) used += block.allocations.length - block.unallocated.length;
  }
  return `pool "${pool.name}" ${formatPrefix(pool.cidr)} (${atLeast}${used} of ${prefixSize(pool.cidr)} used)`;
}
