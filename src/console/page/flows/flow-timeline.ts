/** How many flows began when. Pure. */
import type { FlowRecord } from "../../../flows/flow-record.ts";

export interface Timeline {
  /** Seconds since 1970: the beginning of each bucket. */
  readonly at: readonly number[];
  readonly all: readonly number[];
  readonly denied: readonly number[];
  readonly bucketSeconds: number;
}

const BUCKETS = 90;
/** Lengths that people count in, in seconds. */
const LENGTHS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400];

/** `records`: the oldest first. */
export function timelineOf(records: readonly FlowRecord[]): Timeline | undefined {
  const [first] = records;
  const last = records.at(-1);
  if (first === undefined || last === undefined) return undefined;
  const seconds = (last.start - first.start) / 1_000;
  const bucketSeconds = LENGTHS.find((length) => seconds / length <= BUCKETS) ?? Math.ceil(seconds / BUCKETS);
  const begin = Math.floor(first.start / 1_000 / bucketSeconds);
  const count = Math.floor(last.start / 1_000 / bucketSeconds) - begin + 1;
  const all = Array.from({ length: count }, () => 0);
  const denied = Array.from({ length: count }, () => 0);
  for (const { start, verdict } of records) {
    const bucket = Math.floor(start / 1_000 / bucketSeconds) - begin;
    all[bucket] = (all[bucket] ?? 0) + 1;
    if (verdict === "denied") denied[bucket] = (denied[bucket] ?? 0) + 1;
  }
  return { at: all.map((_, bucket) => (begin + bucket) * bucketSeconds), all, denied, bucketSeconds };
}
