/**
 * Which blocks this host used last: so that they can be read together with
 * everything else, before the affinities that name them are known.
 *
 * A hint is never believed. It only says which keys to add to a read; the read
 * itself tells the truth, and a wrong or missing hint costs one more round
 * trip (docs/decisions/ipam-round-trips.md).
 */
import { type Address, type Family, parseAddress } from "../ip/address.ts";
import { formatPrefix, type Prefix, parsePrefix, prefixContains, prefixCovers } from "../ip/prefix.ts";
import type { IPAMBlock } from "../model/ipam-block.ts";

export interface BlockHint {
  readonly cidr: string;
  /** No free address was left when it was last seen. */
  readonly full: boolean;
  /** The name of its pool, if known. */
  readonly pool?: string | undefined;
  /** It is empty, and not the node's any more: its addresses have rested at this time, in milliseconds, and it can be deleted. */
  readonly leftUntil?: number | undefined;
}

export interface HostHints {
  /** Last used first. */
  readonly blocks: readonly BlockHint[];
  /** The node was seen unregistered, and that was said. */
  readonly warnedUnregistered: boolean;
}

/** Where hints are kept between processes. Neither function ever fails: without hints all still works. */
export interface HintStore {
  readonly load: () => Promise<HostHints>;
  readonly save: (hints: HostHints) => Promise<void>;
}

export const NO_HINTS: HostHints = { blocks: [], warnedUnregistered: false };

const REMEMBERED = 32;
const READ_TO_ASSIGN = 4;
const READ_TO_RELEASE = 16;

/** The blocks where an address of this family will probably be found. */
export function blocksToAssignFrom(hints: HostHints, family: Family): readonly string[] {
  return hints.blocks
    .filter((hint) => !hint.full && familyOf(hint.cidr) === family)
    .slice(0, READ_TO_ASSIGN)
    .map((hint) => hint.cidr);
}

/** The blocks that probably hold what is to be released; `addresses` narrows them down when they are known. */
export function blocksToReleaseFrom(hints: HostHints, addresses: readonly string[]): readonly string[] {
  const known = addresses.flatMap((text) => parseAddress(text) ?? []);
  const holds = (cidr: string) => {
    const prefix = parsePrefix(cidr);
    return prefix !== undefined && known.some((address) => prefixContains(prefix, address));
  };
  const narrowed = known.length > 0 ? hints.blocks.filter((hint) => holds(hint.cidr)) : hints.blocks;
  return narrowed.slice(0, READ_TO_RELEASE).map((hint) => hint.cidr);
}

/** The hints with what was just seen put in front; the same object when nothing is new. */
export function withSeenBlocks(hints: HostHints, seen: readonly BlockHint[], gone: readonly string[] = []): HostHints {
  const known = new Map(hints.blocks.map((hint) => [hint.cidr, hint]));
  const isNews = ({ cidr, full, pool }: BlockHint) => {
    const before = known.get(cidr);
    return before?.full !== full || (pool !== undefined && before.pool !== pool);
  };
  if (!seen.some(isNews) && !gone.some((cidr) => known.has(cidr))) return hints;

  const replaced = new Set([...seen.map((hint) => hint.cidr), ...gone]);
  const latest = seen.map((hint): BlockHint => {
    const pool = hint.pool ?? known.get(hint.cidr)?.pool;
    return pool === undefined ? hint : { ...hint, pool };
  });
  const blocks = [...latest, ...hints.blocks.filter((hint) => !replaced.has(hint.cidr))].slice(0, REMEMBERED);
  return { ...hints, blocks };
}

interface HintedPool {
  readonly name: string;
  readonly cidr: Prefix;
}

export function hintOf(block: IPAMBlock, pools: readonly HintedPool[] = []): BlockHint {
  const pool = pools.find(({ cidr }) => prefixCovers(cidr, block.cidr));
  return {
    cidr: formatPrefix(block.cidr),
    full: block.unallocated.length === 0,
    ...(pool === undefined ? {} : { pool: pool.name }),
  };
}

/** The hints after the node has left this block, empty; its addresses have rested at the time `rested`. */
export function withLeftBlock(hints: HostHints, cidr: string, rested: number): HostHints {
  const left: BlockHint = { cidr, full: true, leftUntil: rested };
  return { ...hints, blocks: [...hints.blocks.filter((hint) => hint.cidr !== cidr), left].slice(0, REMEMBERED) };
}

/** The blocks that the node has left, and whose addresses have rested. */
export function restedBlocks({ blocks }: HostHints, now: number): readonly string[] {
  return blocks.flatMap(({ cidr, leftUntil }) => (leftUntil !== undefined && leftUntil <= now ? cidr : []));
}

/** Whether this host seems to have another block of the same pool with a free address. */
export function hasSpareBeside(hints: HostHints, name: string): boolean {
  const pool = hints.blocks.find(({ cidr }) => cidr === name)?.pool;
  return pool !== undefined && hints.blocks.some((hint) => hint.cidr !== name && hint.pool === pool && !hint.full);
}

/** The names of the pools in which these addresses are, as far as they are known. */
export function poolsOf({ blocks }: HostHints, addresses: readonly Address[]): readonly string[] {
  const pools = addresses.flatMap((address) => blocks.find(({ cidr }) => contains(cidr, address))?.pool ?? []);
  return [...new Set(pools)];
}

function contains(cidr: string, address: Address): boolean {
  const prefix = parsePrefix(cidr);
  return prefix !== undefined && prefixContains(prefix, address);
}

function familyOf(cidr: string): Family {
  return cidr.includes(":") ? 6 : 4;
}
