/**
 * A store that stays open between calls and caches what they read and wrote, so
 * that the next call can decide without reading first; its commit verifies the
 * cached records.
 *
 *   cache ─── decide ──> commit, if nothing has changed ──> done
 *     │ no commit needed        │ something has changed: the refusal includes the first read
 *     v                         v
 *   first read ───────────── decide, and so on as without a cache
 *
 * The cache is never trusted, only compared with the store. It is cleared after
 * any failure, even one that a retry overcame, and when the store was restored
 * from an older copy, since a revision may then stand for another state.
 */
import type { ServerTime } from "../../server-clock.ts";
import type {
  DatastoreEvent,
  Decide,
  Decision,
  OrderedChange,
  Snapshot,
  Transacted,
  Wanted,
  Written,
} from "../datastore.ts";
import { asOneTransaction } from "../ordered-changes.ts";
import { transactFrom } from "../transact.ts";
import { RecordCache } from "./record-cache.ts";
import type { AssumedRead, VerifiedCommit, VerifyingDatastore } from "./verified-commit.ts";

/** `failures`: the number of failed attempts at the store so far. */
export function cachingDatastore(store: VerifyingDatastore, failures: () => number): CachingDatastore {
  return new CachingDatastore(store, failures);
}

export class CachingDatastore implements VerifyingDatastore {
  readonly atomicity = "all changes";
  private cache = new RecordCache();
  private failuresSeen = 0;
  /** The latest revision in a response since the cache was cleared. */
  private latest = 0n;

  constructor(
    private readonly store: VerifyingDatastore,
    private readonly failures: () => number,
  ) {}

  async read(wanted: readonly Wanted[], at?: string): Promise<Snapshot> {
    // A past state is of no use for a commit now.
    if (at !== undefined) return this.store.read(wanted, at);
    const snapshot = await this.ask(
      () => this.store.read(wanted),
      ({ revision }) => revision,
    );
    this.currentCache().addRead(wanted, snapshot);
    return snapshot;
  }

  async commit(given: readonly OrderedChange[]): Promise<Written> {
    const changes = asOneTransaction(given);
    const written = await this.ask(
      () => this.store.commit(changes),
      (answer) => (answer.ok ? answer.revision : undefined),
    );
    if (written.ok) this.currentCache().addCommit(changes, written.revision);
    return written;
  }

  async transact<Outcome>(wanted: readonly Wanted[], decide: Decide<Outcome>): Promise<Transacted<Outcome>> {
    const assumed = this.lookUp(wanted);
    const decided = assumed && decideFromCache(assumed, decide);
    if (!decided) return transactFrom(this, { wanted, snapshot: await this.read(wanted) }, decide);

    const { changes, outcome } = decided;
    const verified = await this.commitIfUnchanged(assumed, changes);
    if (verified.ok) return { written: verified, changes, outcome };
    return transactFrom(this, { wanted, snapshot: verified.snapshot }, decide);
  }

  async commitIfUnchanged(assumed: AssumedRead, given: readonly OrderedChange[]): Promise<VerifiedCommit> {
    const changes = asOneTransaction(given);
    const verified = await this.ask(
      () => this.store.commitIfUnchanged(assumed, changes),
      (answer) => (answer.ok ? answer.revision : answer.snapshot.revision),
    );
    if (verified.ok) this.currentCache().addVerifiedCommit(assumed, changes, verified.revision);
    else this.currentCache().addRead(assumed.wanted, verified.snapshot);
    return verified;
  }

  /** Returns what a read would probably return; `undefined` if the cache holds too little. */
  lookUp(wanted: readonly Wanted[]): AssumedRead | undefined {
    // A decision may record the time: a response tells it first.
    if (this.clock() === "lost") return undefined;
    return this.currentCache().lookUp(wanted);
  }

  clock(): ServerTime {
    return this.store.clock?.();
  }

  watch(prefix: string, from: string, signal: AbortSignal): AsyncIterable<DatastoreEvent> {
    return this.store.watch(prefix, from, signal);
  }

  close(): Promise<void> {
    this.clear();
    return this.store.close();
  }

  private currentCache(): RecordCache {
    if (this.failures() !== this.failuresSeen) this.clear();
    return this.cache;
  }

  private clear(): void {
    this.failuresSeen = this.failures();
    this.latest = 0n;
    this.cache = new RecordCache();
  }

  private async ask<Answer>(
    request: () => Promise<Answer>,
    revisionOf: (answer: Answer) => string | undefined,
  ): Promise<Answer> {
    // Responses may overtake each other, but none to a request sent now can be of an earlier revision.
    const { latest } = this;
    try {
      const answer = await request();
      this.noteRevision(revisionOf(answer), latest);
      return answer;
    } catch (error) {
      this.clear();
      throw error;
    }
  }

  private noteRevision(answered: string | undefined, earliest: bigint): void {
    if (answered === undefined) return;
    const revision = BigInt(answered);
    if (revision < earliest) this.clear();
    if (revision > this.latest) this.latest = revision;
  }
}

/** Only a commit verifies its assumptions. An empty change list, an error or another read has to come from a real read. */
function decideFromCache<Outcome>(
  assumed: AssumedRead,
  decide: Decide<Outcome>,
): Extract<Decision<Outcome>, { kind: "commit" }> | undefined {
  try {
    const decision = decide([assumed]);
    return decision.kind === "commit" && decision.changes.length > 0 ? decision : undefined;
  } catch {
    return undefined;
  }
}
