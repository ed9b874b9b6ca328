/**
 * The error for exhausted pools: which pools were tried, how full they are, and which setting excluded the rest. If addresses
 * rest by a setting, the runtime is told to try again, and when the first of them will have rested.
 */
import { counted } from "../../counted.ts";
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { formatAddress } from "../../ip/address.ts";
import { formatPrefix, prefixContains, prefixCovers, prefixSize } from "../../ip/prefix.ts";
import { hostAffinity, type IPAMBlock } from "../../model/ipam-block.ts";
import { isWaiting } from "../../model/kept-address.ts";
import { quoted } from "../../quote.ts";
import { addressAt, isAllocated } from "../block.ts";
import type { Pool } from "../pools.ts";
import { restLeft } from "../rest.ts";
import type { Search } from "./choice.ts";
import { whyNoNewBlock } from "./new-block.ts";

export function exhausted(search: Search, seen: { readonly complete: boolean }): PluginError {
  const pools = search.pools.map((pool) => describePool(search, pool, seen.complete ? "" : "at least "));
  const reasons = [
    whyNoNewBlock(search) ?? [],
    search.view.configuration().strictAffinity ? "strictAffinity is on: blocks of other nodes are not used" : [],
    search.view.reserved().length > 0 ? "reserved addresses are not used" : [],
    describeHostAddresses(search),
    describeWaiting(search),
    search.passedOver?.() ?? [],
    seen.complete ? [] : "the pools hold more blocks than one search looks through",
  ].flat();
  const action = `Cannot assign an IPv${search.family} address to ${quoted(search.request.handle)}`;
  const state = `no free address in ${pools.join(", ")}`;
  const rests = coolingRests(search);
  if (rests.length === 0) {
    return new PluginError("addresses-exhausted", `${action}: ${state}`, { details: reasons.join("; ") });
  }
  const count = `${counted(rests.length, "released address rests", "released addresses rest")}`;
  const setting = `cooldownSeconds of the pool or of the IPAMConfiguration keeps them from other owners until then: "${identity.adminTool} ipam show" counts them, a smaller value frees them earlier`;
  return new PluginError(
    "try-again-later",
    `${action}: ${state}; ${count}, the next one is free in ${Math.ceil(Math.min(...rests) / 1000)} s`,
    { details: [`${setting}; the runtime tries again`, ...reasons].join("; ") },
  );
}

/** For how long each address still rests by a setting, in milliseconds: of those that this node could use. */
function coolingRests({ view, request, family, pools, now, isHostAddress }: Search): readonly number[] {
  const { strictAffinity } = view.configuration();
  const isUsable = ({ cidr, affinity }: IPAMBlock) =>
    pools.some((pool) => prefixCovers(pool.cidr, cidr)) &&
    (!strictAffinity || affinity === undefined || affinity === hostAffinity(request.node));
  const rests: number[] = [];
  for (const { block } of view.knownBlocks(family)) {
    const cooldown = isUsable(block) ? view.cooldownOf(block) : 0;
    if (cooldown === 0) continue;
    for (const ordinal of block.unallocated) {
      const left = restLeft(block.released?.[ordinal], now, cooldown);
      const address = addressAt(block, ordinal);
      const isReserved = view.reserved().some((prefix) => prefixContains(prefix, address));
      if (left > 0 && !isAllocated(block, ordinal) && !isReserved && !isHostAddress(address)) rests.push(left);
    }
  }
  return rests;
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

/** Of the blocks that were read. */
function describeWaiting({ view, family, pools }: Search): readonly string[] {
  const blocks = [...view.knownBlocks(family)].map(({ block }) => block);
  const inPools = blocks.filter(({ cidr }) => pools.some((pool) => prefixCovers(pool.cidr, cidr)));
  const waiting = inPools.flatMap(({ attributes, allocations }) =>
    allocations.filter((index) => index !== undefined && isWaiting(attributes[index])),
  ).length;
  if (waiting === 0) return [];
  const are = waiting === 1 ? "1 of the used addresses is" : `${waiting} of the used addresses are`;
  const { adminTool } = identity;
  return [
    `${are} kept for pods that do not run: "${adminTool} ipam show --addresses" lists them, "${adminTool} ipam release --pod NAMESPACE/POD" frees them`,
  ];
}

function describePool({ view, family }: Search, pool: Pool, atLeast: string): string {
  let used = 0;
  for (const { block } of view.knownBlocks(family)) {
    if (prefixCovers(pool.cidr, block.cidr)) used += block.allocations.length - block.unallocated.length;
  }
  return `pool "${pool.name}" ${formatPrefix(pool.cidr)} (${atLeast}${used} of ${prefixSize(pool.cidr)} used)`;
}
