/**
 * A watch that survives the loss of its connection: it switches to another
 * member and resumes after the last bookmark.
 *
 * A frozen or partitioned member sends nothing, and neither does an idle
 * cluster. So after some silence the member gets a linearizable read, which
 * needs a majority of the members; without a response the connection is closed.
 *
 * A stop ends the watch at once, whatever the connection does: a process that waits
 * for it is about to exit.
 */
import { PluginError } from "../../errors.ts";
import { unlessAborted } from "../../timers.ts";
import { type DatastoreEvent, HistoryGone } from "../datastore.ts";
import type { EtcdClient } from "./client.ts";
import { unavailable } from "./client.ts";
import type { Endpoint } from "./endpoints.ts";
import { type EtcdFailure, failureOfConnection, failureOfResponse } from "./failure.ts";
import { prefixRange, readTransaction } from "./transactions.ts";
import type { WatchedChange, WatchResponse } from "./transport.ts";

export interface WatchLimits {
  /** Silence after which the member is probed. */
  readonly quietMilliseconds: number;
  /** etcd reports progress every ten minutes: longer silence means that the connection is dead. */
  readonly mostQuietTimes: number;
  readonly probeMilliseconds: number;
}

export const WATCH_LIMITS: WatchLimits = { quietMilliseconds: 20_000, mostQuietTimes: 36, probeMilliseconds: 5_000 };

export async function* watchPrefix(
  client: EtcdClient,
  { prefix, from, stop, limits }: { prefix: string; from: string; stop: AbortSignal; limits: WatchLimits },
): AsyncIterable<DatastoreEvent> {
  let bookmark = from;
  let retries = client.startRetries(stop);
  const failures = new Map<Endpoint, EtcdFailure>();
  while (!stop.aborted) {
    const endpoint = client.ring.current;
    try {
      for await (const event of watchAt(client, endpoint, { prefix, from: bookmark, stop, limits })) {
        if (event.kind === "bookmark") {
          bookmark = event.revision;
          if (failures.size > 0) retries.end();
          failures.clear();
        }
        yield event;
        if (stop.aborted) return;
      }
    } catch (error) {
      if (stop.aborted) return;
      if (error instanceof PluginError) throw error;
      const failure = failureOfConnection(error);
      if (failures.size === 0) retries = client.startRetries(stop);
      failures.set(endpoint, failure);
      client.ring.giveUp(endpoint);
      const { cure } = failure.diagnosis;
      if (cure === "repair" ? failures.size >= client.ring.size : !retries.allow("wait")) {
        retries.end();
        throw unavailable(failures);
      }
      await retries.pause();
    }
  }
}

interface WatchPlan {
  readonly prefix: string;
  readonly from: string;
  readonly stop: AbortSignal;
  readonly limits: WatchLimits;
}

/** The watch at one member, until it fails. */
async function* watchAt(client: EtcdClient, endpoint: Endpoint, plan: WatchPlan): AsyncIterable<DatastoreEvent> {
  const stream = new AbortController();
  const signal = AbortSignal.any([plan.stop, stream.signal]);
  try {
    const answers = await openStream(client, endpoint, plan, { stream, signal });
    let revision = plan.from;
    const seen = BigInt(plan.from);
    yield { kind: "bookmark", revision };
    for await (const answer of withProbes(client, endpoint, { answers, signal, limits: plan.limits })) {
      if (answer !== "alive") {
        requireAlive(answer, plan.from);
        yield* answer.changes.filter((change) => BigInt(revisionOf(change)) > seen).map(toEvent);
        // Events of one revision come together, so the last one's revision is complete.
        const last = answer.changes.at(-1);
        revision = last ? revisionOf(last) : answer.revision;
      }
      yield { kind: "bookmark", revision };
    }
    throw failureOfResponse(14, "the watch ended: transport is closing");
  } finally {
    stream.abort();
  }
}

/** Returns the stream once etcd has confirmed the watch. */
async function openStream(
  client: EtcdClient,
  endpoint: Endpoint,
  { prefix, from, limits }: WatchPlan,
  { stream, signal }: { stream: AbortController; signal: AbortSignal },
): Promise<AsyncIterator<WatchResponse>> {
  const request = { ...prefixRange(prefix), startRevision: startAfter(from) };
  const cancel = client.timers.after(limits.probeMilliseconds, () => stream.abort());
  try {
    return await client.attempt(endpoint, signal, async (transport, call) => {
      const answers = transport.watch(call, request)[Symbol.asyncIterator]();
      const first = await unlessAborted(answers.next(), signal);
      if (first.done) throw failureOfResponse(14, "the watch ended: transport is closing");
      requireAlive(first.value, from);
      await requireReached(client, from, first.value.revision);
      return answers;
    });
  } finally {
    cancel();
  }
}

/**
 * Where a watch starts that has seen everything up to this revision: at it, so that it comes once more. A compaction
 * removes the deletions of its own revision, and an older etcd serves a watch that starts there without them
 * (etcd-io/etcd#18089); of one that starts before it says that the history is gone.
 */
export function startAfter(seen: string): string {
  return seen === "0" ? "1" : seen;
}

/** A single member may lag behind. If the cluster has not reached the revision, it was restored from an older copy. */
async function requireReached(client: EtcdClient, from: string, revision: string): Promise<void> {
  if (BigInt(revision) >= BigInt(from)) return;
  const retries = client.startRetries();
  const now = await client.transact(readTransaction([]), "any failure", retries).finally(() => retries.end());
  if (BigInt(now.revision) < BigInt(from)) throw new HistoryGone(from);
}

function requireAlive({ canceled, compactRevision, cancelReason }: WatchResponse, from: string): void {
  if (compactRevision !== "0") throw new HistoryGone(from);
  if (canceled)
    throw failureOfResponse(7, cancelReason === "" ? "the watch was refused: permission denied" : cancelReason);
}

/** "alive": the member has answered a probe, and nothing has changed. */
async function* withProbes(
  client: EtcdClient,
  endpoint: Endpoint,
  { answers, signal, limits }: { answers: AsyncIterator<WatchResponse>; signal: AbortSignal; limits: WatchLimits },
): AsyncIterable<WatchResponse | "alive"> {
  let next = answers.next();
  for (let quietTimes = 0; quietTimes < limits.mostQuietTimes; ) {
    // If the consumer stops, this response and its failure are ignored.
    next.catch(() => {});
    const answer = await unlessAborted(unlessQuiet(client, next, limits), signal);
    if (answer === "quiet") {
      await unlessAborted(probe(client, endpoint, limits), signal);
      quietTimes += 1;
      yield "alive";
    } else if (answer.done) return;
    else {
      quietTimes = 0;
      yield answer.value;
      next = answers.next();
    }
  }
  throw failureOfResponse(14, "the watch is silent: transport is closing");
}

async function unlessQuiet<Answer>(
  { timers }: EtcdClient,
  answer: Promise<Answer>,
  limits: WatchLimits,
): Promise<Answer | "quiet"> {
  const quiet = Promise.withResolvers<"quiet">();
  const cancel = timers.after(limits.quietMilliseconds, () => quiet.resolve("quiet"));
  return Promise.race([answer, quiet.promise]).finally(cancel);
}

async function probe(client: EtcdClient, endpoint: Endpoint, limits: WatchLimits): Promise<void> {
  const limit = client.timers.timeout(limits.probeMilliseconds);
  const signal = AbortSignal.any([limit.signal, client.closed]);
  const read = client.attempt(endpoint, signal, (transport, call) => transport.transact(call, readTransaction([])));
  await read.finally(limit.cancel);
}

function toEvent(change: WatchedChange): DatastoreEvent {
  if (change.kind === "delete") return change;
  const { key, value, revision } = change.entry;
  return { kind: "put", entry: { key, value, revision } };
}

export function revisionOf(change: WatchedChange): string {
  return change.kind === "put" ? change.entry.revision : change.revision;
}
