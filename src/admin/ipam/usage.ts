/** The usage of pools. Pure. Sizes of IPv6 pools exceed 2^53, hence bigint. */
import {
  comparePrefixes,
  formatPrefix,
  type Prefix,
  prefixContains,
  prefixCovers,
  prefixesOverlap,
  prefixSize,
} from "../../ip/prefix.ts";
import { addressAt } from "../../ipam/block.ts";
import { isWaitingAllocation, keptIn } from "../../ipam/leaks/waiting-addresses.ts";
import { restingOrdinals } from "../../ipam/rest.ts";
import { affineNode, type IPAMBlock } from "../../model/ipam-block.ts";
import { allocationsOf } from "./blocks.ts";

export interface BlockUsage {
  readonly cidr: string;
  readonly node: string | undefined;
  readonly size: bigint;
  readonly used: bigint;
  /** Covered by reservations and not in use. */
  readonly reserved: bigint;
  readonly free: bigint;
  /** Addresses in use on another node than the block's. */
  readonly borrowed: number;
}

export interface PoolUsage {
  /** `undefined`: the usage of blocks outside all pools. */
  readonly pool: string | undefined;
  readonly disabled: boolean;
  readonly cidr: string;
  readonly size: bigint;
  readonly used: bigint;
  /** Of the used ones: kept for a pod, and those of them that wait for it. */
  readonly kept: number;
  readonly waiting: number;
  /** Covered by reservations and not in use. */
  readonly reserved: bigint;
  /** Addresses in unreadable blocks: whether they are in use is unknown. */
  readonly unreadable: bigint;
  readonly free: bigint;
  readonly blocks: readonly BlockUsage[];
  readonly unreadableBlocks: readonly string[];
}

export interface NamedPool {
  readonly name: string;
  readonly cidr: Prefix;
  readonly disabled: boolean;
}

export interface Records {
  readonly blocks: readonly IPAMBlock[];
  /** The CIDRs of unreadable blocks. */
  readonly unreadable: readonly Prefix[];
  readonly reserved: readonly Prefix[];
}

export function poolUsage(pool: NamedPool, records: Records): PoolUsage {
  const inside = records.blocks.filter((block) => prefixCovers(pool.cidr, block.cidr));
  const unreadable = records.unreadable.filter((cidr) => prefixCovers(pool.cidr, cidr));
  const size = prefixSize(pool.cidr);
  const used = usedIn(inside);
  const hidden = sumOf(unreadable, prefixSize);
  const reservedThere = sumOf(unreadable, (cidr) => reservedFree(cidr, [], records.reserved));
  const keptBack = reservedFree(pool.cidr, inside, records.reserved) - reservedThere;
  return {
    pool: pool.name,
    disabled: pool.disabled,
    cidr: formatPrefix(pool.cidr),
    size,
    used,
    ...keptUsage(inside),
    reserved: keptBack,
    unreadable: hidden,
    free: size - used - keptBack - hidden,
    blocks: blockUsages(inside, records.reserved),
    unreadableBlocks: unreadable.toSorted(comparePrefixes).map(formatPrefix),
  };
}

/** How many of the free addresses of the pool rest. `now`: the time of the datastore. */
export function restingIn(
  { cidr }: Pick<NamedPool, "cidr">,
  { blocks, reserved }: Pick<Records, "blocks" | "reserved">,
  now: Date,
): number {
  const inside = blocks.filter((block) => prefixCovers(cidr, block.cidr));
  const resting = inside.flatMap((block) => restingOrdinals(block, now).map((ordinal) => addressAt(block, ordinal)));
  return resting.filter((address) => !reserved.some((prefix) => prefixContains(prefix, address))).length;
}

/** The usage of blocks outside all pools; `undefined` if there are none. */
export function strayUsage(pools: readonly NamedPool[], blocks: readonly IPAMBlock[]): PoolUsage | undefined {
  const stray = blocks.filter((block) => pools.every(({ cidr }) => !prefixCovers(cidr, block.cidr)));
  if (stray.length === 0) return undefined;
  const used = usedIn(stray);
  return {
    pool: undefined,
    disabled: false,
    cidr: "",
    size: used,
    used,
    ...keptUsage(stray),
    reserved: 0n,
    unreadable: 0n,
    free: 0n,
    blocks: blockUsages(stray, []),
    unreadableBlocks: [],
  };
}

/** Sorted by address, not by text. */
export function blockUsages(blocks: readonly IPAMBlock[], reserved: readonly Prefix[]): readonly BlockUsage[] {
  const sorted = blocks.toSorted((left, right) => comparePrefixes(left.cidr, right.cidr));
  return sorted.map((block) => blockUsage(block, reservedFree(block.cidr, [block], reserved)));
}

function blockUsage(block: IPAMBlock, reserved: bigint): BlockUsage {
  const node = affineNode(block);
  const allocations = allocationsOf(block);
  const size = prefixSize(block.cidr);
  const used = BigInt(allocations.length);
  const borrowed = allocations.filter(({ secondary }) => secondary["node"] !== undefined && secondary["node"] !== node);
  const free = size - used - reserved;
  return { cidr: formatPrefix(block.cidr), node, size, used, reserved, free, borrowed: borrowed.length };
}

function keptUsage(blocks: readonly IPAMBlock[]): Pick<PoolUsage, "kept" | "waiting"> {
  const kept = blocks.flatMap(keptIn);
  return { kept: kept.length, waiting: kept.filter(isWaitingAllocation).length };
}

function usedIn(blocks: readonly IPAMBlock[]): bigint {
  return sumOf(blocks, (block) => BigInt(allocationsOf(block).length));
}

function sumOf<Each>(all: readonly Each[], count: (each: Each) => bigint): bigint {
  return all.reduce((sum, each) => sum + count(each), 0n);
}

function reservedFree(pool: Prefix, blocks: readonly IPAMBlock[], reserved: readonly Prefix[]): bigint {
  const inside = reserved.filter((prefix) => prefixesOverlap(pool, prefix));
  if (inside.some((prefix) => prefixCovers(prefix, pool))) return prefixSize(pool) - usedIn(blocks);

  const apart = inside.filter((prefix, index) => !inside.some((other, at) => hides(other, at, prefix, index)));
  const size = sumOf(apart, prefixSize);
  const used = blocks
    .flatMap(allocationsOf)
    .filter(({ address }) => apart.some((prefix) => prefixContains(prefix, address)));
  return size - BigInt(used.length);
}

/** Whether another prefix already includes this one: it covers it, or is equal and comes first. */
function hides(other: Prefix, at: number, prefix: Prefix, index: number): boolean {
  return at !== index && prefixCovers(other, prefix) && (other.length < prefix.length || at < index);
}
