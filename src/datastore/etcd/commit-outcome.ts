/**
 * Finds out whether a commit of unknown outcome took effect. Needed after a
 * timeout or a connection reset, if the same commit was retried and refused, or
 * if a retry could do harm.
 *
 * etcd's history tells: the first write to a key after the revision that our
 * commit expected is either ours or the competing one. If at that revision
 * every key of the commit has the value we wrote, the commit was ours.
 */
import type { Change, Written } from "../datastore.ts";
import { type EtcdClient, OutcomeUnknown } from "./client.ts";
import { EtcdFailure, failureOfConnection, failureOfResponse, isCompacted } from "./failure.ts";
import type { RetryBudget } from "./retry-budget.ts";
import type { Operation, StoredEntry } from "./transport.ts";
import { revisionOf, startAfter } from "./watch.ts";

export type OwnCommit = Extract<Written, { ok: true }>;

/** Whether a commit cannot take effect twice, because its own writes make its comparisons fail. */
export function guardsItself(changes: readonly Change[]): boolean {
  return changes.some(({ kind }) => kind === "create" || kind === "update" || kind === "delete");
}

/** Returns the response that was lost; `undefined` if the commit did not take effect. */
export async function findOwnCommit(
  client: EtcdClient,
  changes: readonly Change[],
  retries: RetryBudget,
): Promise<OwnCommit | undefined> {
  try {
    const revision = await revisionToExamine(client, changes, retries);
    if (revision === undefined) return undefined;
    const entries = await readAt(client, changes, retries, revision);
    return isWrittenAt(changes, entries, revision) ? { ok: true, revision } : undefined;
  } catch (error) {
    // The history is compacted, so nothing can be proven: the caller reads again and decides again.
    if (isCompacted(error) || isCompacted(causeOf(error))) return undefined;
    throw error;
  }
}

function causeOf(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined;
}

async function revisionToExamine(
  client: EtcdClient,
  changes: readonly Change[],
  retries: RetryBudget,
): Promise<string | undefined> {
  const entries = await readAt(client, changes, retries);
  for (const change of changes) {
    const entry = entries.get(change.key);
    if (change.kind === "create" && entry) return entry.createRevision;
    if (change.kind === "put" && entry && !guardsItself(changes)) return entry.revision;
    if (change.kind === "update" || change.kind === "delete") {
      if (entry?.revision === change.revision) return undefined;
      return firstWriteAfter(client, change.key, change.revision, retries);
    }
  }
  return undefined;
}

async function readAt(
  client: EtcdClient,
  changes: readonly Change[],
  retries: RetryBudget,
  revision?: string,
): Promise<ReadonlyMap<string, StoredEntry>> {
  const success = changes.map(
    ({ key }): Operation => ({ kind: "range", key, ...(revision === undefined ? {} : { revision }) }),
  );
  const answer = await client.transact({ comparisons: [], success, failure: [] }, "any failure", retries);
  return new Map(answer.ranges.flat().map((entry) => [entry.key, entry]));
}

/** Throws `OutcomeUnknown` if this member cannot tell: another may. */
async function firstWriteAfter(
  client: EtcdClient,
  key: string,
  revision: string,
  retries: RetryBudget,
): Promise<string> {
  const startRevision = startAfter(revision);
  const endpoint = client.ring.current;
  const stream = new AbortController();
  const limit = AbortSignal.any([retries.nextAttempt(), stream.signal]);
  try {
    return await client.attempt(endpoint, limit, async (transport, call) => {
      for await (const { changes, canceled, cancelReason } of transport.watch(call, { key, startRevision })) {
        const first = changes.map(revisionOf).find((written) => written !== revision);
        if (first !== undefined) return first;
        if (canceled) throw compacted(cancelReason);
      }
      throw failureOfResponse(14, "the watch ended: transport is closing");
    });
  } catch (error) {
    const failure = failureOfConnection(error);
    if (isCompacted(failure)) throw failure;
    client.ring.giveUp(endpoint);
    throw new OutcomeUnknown(new Map([[endpoint, failure]]));
  } finally {
    stream.abort();
  }
}

function compacted(reason: string): EtcdFailure {
  const diagnosis = { stage: "request", effect: "none", cure: "repair", advice: "" } as const;
  return new EtcdFailure(diagnosis, `required revision has been compacted ${reason}`);
}

function isWrittenAt(changes: readonly Change[], entries: ReadonlyMap<string, StoredEntry>, revision: string): boolean {
  return changes.every((change) => {
    if (change.kind === "expect") return true;
    const entry = entries.get(change.key);
    if (change.kind === "delete") return entry === undefined;
    return entry?.revision === revision && entry.value === change.value;
  });
}
