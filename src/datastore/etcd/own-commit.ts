/**
 * Did a commit of unknown outcome take effect? Asked after a time-out or a
 * reset, when the same commit, tried again, was refused or could do harm.
 *
 * etcd remembers: the first write to a key after the revision that our commit
 * guarded it with is either ours, or the one that beat us. If at that revision
 * every key of the commit holds what we wrote, the commit was ours.
 */
import type { Change, Written } from "../datastore.ts";
import { type EtcdClient, OutcomeUnknown } from "./client.ts";
import { EtcdFailure, failureOfAnswer, failureOfConnection, isCompacted } from "./failure.ts";
import type { Patience } from "./patience.ts";
import type { Operation, StoredEntry } from "./transport.ts";

export type OwnCommit = Extract<Written, { ok: true }>;

/** A commit that, once done, cannot be done again: its own writes break its guards. */
export function guardsItself(changes: readonly Change[]): boolean {
  return changes.some(({ kind }) => kind === "create" || kind === "update" || kind === "delete");
}

/** What the commit was answered, had its answer arrived; `undefined` when it did not take effect. */
export async function findOwnCommit(
  client: EtcdClient,
  changes: readonly Change[],
  patience: Patience,
): Promise<OwnCommit | undefined> {
  try {
    const revision = await revisionToExamine(client, changes, patience);
    if (revision === undefined) return undefined;
    const entries = await readAt(client, changes, patience, revision);
    return isWrittenAt(changes, entries, revision) ? { ok: true, revision } : undefined;
  } catch (error) {
    // The history is gone, and with it the proof: the caller reads again and decides again.
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
  patience: Patience,
): Promise<string | undefined> {
  const entries = await readAt(client, changes, patience);
  for (const change of changes) {
    const entry = entries.get(change.key);
    if (change.kind === "create" && entry) return entry.createRevision;
    if (change.kind === "put" && entry && !guardsItself(changes)) return entry.revision;
    if (change.kind === "update" || change.kind === "delete") {
      if (entry?.revision === change.revision) return undefined;
      return firstWriteAfter(client, change.key, change.revision, patience);
    }
  }
  return undefined;
}

async function readAt(
  client: EtcdClient,
  changes: readonly Change[],
  patience: Patience,
  revision?: string,
): Promise<ReadonlyMap<string, StoredEntry>> {
  const success = changes.map(
    ({ key }): Operation => ({ kind: "range", key, ...(revision === undefined ? {} : { revision }) }),
  );
  const answer = await client.transact({ comparisons: [], success, failure: [] }, "any failure", patience);
  return new Map(answer.ranges.flat().map((entry) => [entry.key, entry]));
}

/** Throws `OutcomeUnknown` where the member does not tell: another may. */
async function firstWriteAfter(client: EtcdClient, key: string, revision: string, patience: Patience): Promise<string> {
  const startRevision = String(BigInt(revision) + 1n);
  const endpoint = client.ring.current;
  const stream = new AbortController();
  const limit = AbortSignal.any([patience.nextAttempt(), stream.signal]);
  try {
    return await client.attempt(endpoint, limit, async (transport, call) => {
      for await (const { changes, canceled, cancelReason } of transport.watch(call, { key, startRevision })) {
        const [first] = changes;
        if (first) return first.kind === "put" ? first.entry.revision : first.revision;
        if (canceled) throw compacted(cancelReason);
      }
      throw failureOfAnswer(14, "the watch ended: transport is closing");
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
