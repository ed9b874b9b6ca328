/** Who talked to whom in a time: summed roll-ups, or, for what they do not contain, summed records. */
import type { FlowAnswer, FlowFilter } from "../../../flows/flow-answer.ts";
import { type FlowQuery, FlowQueryError } from "../../../flows/flow-query.ts";
import { parsePrefixOrAddress } from "../../../ip/prefix.ts";
import { nextTurn } from "../../../timers.ts";
import type { FlowStore } from "./flow-store.ts";
import { findRecords } from "./read-records.ts";
import { MINUTE, merged, type RollupKey, type RollupSum, rollupKeyOf, rollupMatcher } from "./rollups.ts";

/** One piece: between two of them the collector does its other work. */
const PIECE_MINUTES = 60;
const PIECE_KEYS = 2_000;

interface Asking {
  readonly node: string;
  readonly signal: AbortSignal;
}

/** In no order. */
export async function* answerRollups(store: FlowStore, filter: FlowFilter, asking: Asking): AsyncIterable<FlowAnswer> {
  const { query } = filter;
  if (query.last !== undefined)
    throw new FlowQueryError("last", `${query.last} sums are not the newest ones; use "since"`);
  const field = fieldOfRecords(query);
  if (field === undefined) yield* answerSums(store, filter, asking);
  else yield* answerRecords(store, filter, { ...asking, field });
}

async function* answerSums(store: FlowStore, filter: FlowFilter, { node, signal }: Asking): AsyncIterable<FlowAnswer> {
  const { query } = filter;
  const since = Math.floor((query.since ?? 0) / MINUTE);
  const until = Math.floor((query.until ?? store.newestPut) / MINUTE) + 1;
  const first = Math.max(since - PIECE_MINUTES, store.rollups.oldestMinute() ?? until);
  const sums = new Map<number, RollupSum>();
  // A clock that was wrong may have left minutes of any year.
  const nextFrom = (minute: number) => store.rollups.nextMinute(minute) ?? until;
  for (let minute = nextFrom(first); minute < until; minute = nextFrom(minute + PIECE_MINUTES)) {
    store.rollups.addTo(sums, [minute, Math.min(until, minute + PIECE_MINUTES)], since);
    await nextTurn(signal);
  }
  const matcher = rollupMatcher(filter);
  const reading = { node, matches: (key: RollupKey) => matcher(key, node) };
  let count = 0;
  for (const [key, sum] of sums) {
    const rollup = store.rollups.read(key, sum, reading);
    if (rollup !== undefined) yield { rollup };
    count += 1;
    if (count % PIECE_KEYS === 0) await nextTurn(signal);
  }
}

/** Roll-ups know workloads, not their pods, labels, addresses and Services. */
function fieldOfRecords(query: FlowQuery): string | undefined {
  if (query.id !== undefined) return "id";
  if (query.pod !== undefined) return "pod";
  if (query.label !== undefined) return "label";
  if (query.staged !== undefined) return "staged";
  return (["from", "to"] as const).find((field) => {
    const text = query[field];
    return text !== undefined && (text.startsWith("service/") || parsePrefixOrAddress(text) !== undefined);
  });
}

interface SumOfRecords {
  readonly key: RollupKey;
  readonly sum: RollupSum;
}

async function* answerRecords(
  store: FlowStore,
  filter: FlowFilter,
  { node, signal, field }: Asking & { readonly field: string },
): AsyncIterable<FlowAnswer> {
  const sums = new Map<string, SumOfRecords>();
  const seen = new Set<string>();
  for await (const record of findRecords(store, filter, signal)) {
    // It has changed since it was read.
    if (seen.has(record.id)) continue;
    if (record.state === "open") seen.add(record.id);
    const key = rollupKeyOf(record);
    const { start, end, sent, received } = record;
    const sum = {
      ...{ first: Math.floor(start / MINUTE), after: Math.floor(end / MINUTE) + 1, flows: 1 },
      ...{ packets: sent.packets + received.packets, bytes: sent.bytes + received.bytes },
    };
    const text = JSON.stringify(key);
    const known = sums.get(text);
    sums.set(text, { key, sum: known === undefined ? sum : merged(known.sum, sum) });
  }
  for (const { key, sum } of sums.values()) {
    const { first, after, ...counts } = sum;
    yield { rollup: { node, from: first * MINUTE, until: after * MINUTE, ...key, ...counts } };
  }
  const removed = store.removedUntil;
  if (removed === undefined || removed < (filter.query.since ?? 0)) return;
  const kept = `those until ${new Date(removed).toISOString()} are not kept any more`;
  const message = `"${field}" is not in the roll-ups: single flows were summed; ${kept}`;
  yield { problem: { node, message } };
}
