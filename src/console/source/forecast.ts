/**
 * When a pool will be exhausted, from what its blocks say of their past. Pure.
 *
 * Addresses that are in use say when they were assigned, but those that were released say nothing any more: with pods that are
 * replaced often, most of them would seem new. Blocks stay for as long as their nodes use them, and a block carries the time at
 * which it was created. So growth is counted in new blocks, each as full as blocks are on average now.
 *
 *   |<- first day ->|                                     |
 *   a cluster begins with a block for each node: no growth | now
 *                   |<-------- counted: at most 30 days ->|
 */
import type { IPAMBlock } from "../../model/ipam-block.ts";

export interface PoolGrowth {
  /** When its blocks were created, in milliseconds since 1970; `undefined`: such a block does not say. */
  readonly blocksCreated: readonly (number | undefined)[];
  readonly used: bigint;
  /** What can still be assigned. */
  readonly free: bigint;
  /** In milliseconds since 1970. */
  readonly now: number;
}

export interface Forecast {
  /** In milliseconds since 1970. */
  readonly exhausted: number;
  /** Addresses. */
  readonly perDay: number;
  /** From the growth of so many days. */
  readonly fromDays: number;
}

const DAY = 86_400_000;
const LEAST_DAYS = 2;
const MOST_DAYS = 30;
/** A block or two may have any reason. */
const LEAST_BLOCKS = 3;
/** Later is as good as never. */
const HORIZON = 3_650;

/** `undefined`: too little is known, or it does not fill. */
export function forecastOf({ blocksCreated, used, free, now }: PoolGrowth): Forecast | undefined {
  const times = blocksCreated.filter((time) => time !== undefined);
  // Blocks of releases that did not record the time are old: growth without them would still be right if they are few.
  if (times.length === 0 || 2 * times.length < blocksCreated.length || free <= 0n) return undefined;
  const counted = Math.max(Math.min(...times) + DAY, now - MOST_DAYS * DAY);
  const days = (now - counted) / DAY;
  const grown = times.filter((time) => time > counted && time <= now).length;
  if (days < LEAST_DAYS || grown < LEAST_BLOCKS) return undefined;
  const perDay = (grown / days) * (Number(used) / blocksCreated.length);
  const left = Number(free) / perDay;
  if (!(left <= HORIZON)) return undefined;
  return { exhausted: Math.round(now + left * DAY), perDay: Math.round(perDay * 10) / 10, fromDays: Math.round(days) };
}

/** The earliest release that records it was written later than this. */
const EARLIEST_NANOSECONDS = BigInt(Date.parse("2020-01-01T00:00:00Z")) * 1_000_000n;

/** The sequence number of a block begins at the time of its creation, in nanoseconds, and grows by one with each write. */
export function creationOf({ sequenceNumber }: Pick<IPAMBlock, "sequenceNumber">): number | undefined {
  return sequenceNumber < EARLIEST_NANOSECONDS ? undefined : Number(sequenceNumber / 1_000_000n);
}
