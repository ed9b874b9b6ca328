/**
 * The datastore of a single host: one SQLite file, shared by any number of
 * processes, without a server. The file must be on a local filesystem.
 *
 * Writers take turns (`BEGIN IMMEDIATE`), readers never wait. By default, the
 * last process to close the file checkpoints the write-ahead log, which flushes
 * the disk four times. A short-lived process leaves that to a later one unless
 * the log has grown: every process that opens the file reads it.
 */
import type { Database } from "bun:sqlite";
import { commitEffect } from "../commit-effect.ts";
import type { Decide, OrderedChange, Snapshot, Transacted, Wanted, Written } from "../datastore.ts";
import { type Change, type Datastore, type DatastoreEvent, HistoryGone } from "../datastore.ts";
import { asOneTransaction } from "../ordered-changes.ts";
import { findRefusal } from "../preconditions.ts";
import { transactOn } from "../transact.ts";
import { ChangePoll } from "./change-poll.ts";
import { openFile } from "./file.ts";
import { retryWhileLocked } from "./retry-while-locked.ts";
import { prepareSchema } from "./schema.ts";
import { type HistoryLimits, readChanges, readCounter, readEntries, revisionOf, writeChanges } from "./tables.ts";

const HISTORY: HistoryLimits = { revisions: 2_000n, bytes: 16n * 1024n * 1024n };

/** About fifteen plugin calls. Reading this much takes a tenth of the time of the flushes. */
const SMALL_JOURNAL_BYTES = 512 * 1024;

export interface EmbeddedOptions {
  readonly history?: HistoryLimits;
  /** What `close()` does. A process that exits right after it may leave a small journal in place. */
  readonly atClose?: "close the file" | "leave a small journal";
}

/** Opens the file; creates it and its directory if they do not exist. */
export async function openEmbedded(path: string, options: EmbeddedOptions = {}): Promise<Datastore> {
  const database = await openFile(path);
  try {
    await prepareSchema(database);
  } catch (error) {
    database.close();
    throw error;
  }
  return new EmbeddedDatastore(database, { history: HISTORY, atClose: "close the file", ...options });
}

class EmbeddedDatastore implements Datastore {
  readonly atomicity = "all changes";
  private readonly closing = new AbortController();
  private readonly poll: ChangePoll;

  constructor(
    private readonly database: Database,
    private readonly options: Required<EmbeddedOptions>,
  ) {
    this.poll = new ChangePoll(() => readCounter(database).revision);
  }

  read(wanted: readonly Wanted[]): Promise<Snapshot> {
    return retryWhileLocked(this.database, () =>
      this.transaction("BEGIN", () => ({
        revision: String(readCounter(this.database).revision),
        answers: wanted.map((each) => readEntries(this.database, each)),
      })),
    );
  }

  async commit(given: readonly OrderedChange[]): Promise<Written> {
    const changes = asOneTransaction(given);
    // A deferred transaction that writes after reading fails immediately if another process wrote in between.
    const written = await commitEffect(changes, () =>
      retryWhileLocked(this.database, () => this.transaction("BEGIN IMMEDIATE", () => this.write(changes))),
    );
    this.poll.lookNow();
    return written;
  }

  /** A read of this file is so cheap that a cache would gain nothing. */
  transact<Outcome>(wanted: readonly Wanted[], decide: Decide<Outcome>): Promise<Transacted<Outcome>> {
    return transactOn(this, wanted, decide);
  }

  async *watch(prefix: string, from: string, signal: AbortSignal): AsyncIterable<DatastoreEvent> {
    const stop = AbortSignal.any([signal, this.closing.signal]);
    let seen = BigInt(from);
    while (!stop.aborted) {
      const after = seen;
      const { events, revision } = await retryWhileLocked(this.database, () => this.changesAfter(prefix, after));
      seen = revision;
      for (const event of [...events, { kind: "bookmark", revision: String(seen) } as const]) {
        yield event;
        if (stop.aborted) return;
      }
      await this.poll.changedFrom(seen, stop);
    }
  }

  async close(): Promise<void> {
    this.closing.abort();
    if (this.options.atClose === "leave a small journal" && this.journalBytes() <= SMALL_JOURNAL_BYTES) return;
    this.database.close();
  }

  private journalBytes(): number {
    return Bun.file(`${this.database.filename}-wal`).size;
  }

  private write(changes: readonly Change[]): Written {
    const refusal = findRefusal(changes, (key) => revisionOf(this.database, key));
    if (refusal) return refusal;
    const writesNothing = changes.every((change) => change.kind === "expect");
    const revision = writesNothing
      ? readCounter(this.database).revision
      : writeChanges(this.database, changes, this.options.history);
    return { ok: true, revision: String(revision) };
  }

  private changesAfter(prefix: string, after: bigint): { events: readonly DatastoreEvent[]; revision: bigint } {
    return this.transaction("BEGIN", () => {
      const { revision, forgotten } = readCounter(this.database);
      if (after < forgotten || after > revision) throw new HistoryGone(String(after));
      return { events: readChanges(this.database, prefix, after), revision };
    });
  }

  private transaction<Result>(begin: "BEGIN" | "BEGIN IMMEDIATE", action: () => Result): Result {
    this.database.run(begin);
    try {
      const result = action();
      this.database.run("COMMIT");
      return result;
    } catch (error) {
      if (this.database.inTransaction) this.database.run("ROLLBACK");
      throw error;
    }
  }
}
