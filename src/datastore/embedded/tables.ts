/**
 * The synchronous half of the embedded datastore: each function is a part of
 * one SQLite transaction that the caller has opened.
 */
import type { Database } from "bun:sqlite";
import type { Change, DatastoreEvent, Entry, Wanted } from "../datastore.ts";
import { prefixEnd } from "../key-order.ts";

export interface Counter {
  /** The revision of the last commit. */
  readonly revision: bigint;
  /** The log contains every change after this revision. */
  readonly forgotten: bigint;
}

/** How much of the log is kept for watches: whichever of the two is reached first. */
export interface HistoryLimits {
  readonly revisions: bigint;
  readonly bytes: bigint;
}

/** Trimming scans the log, so it happens only once in so many commits. */
const TRIM_EVERY = 64n;

interface EntryRow {
  readonly key: string;
  readonly value: string;
  readonly revision: bigint;
}

interface ChangeRow {
  readonly key: string;
  readonly value: string | null;
  readonly revision: bigint;
}

export function readCounter(database: Database): Counter {
  const counter = database.query<Counter, []>("SELECT revision, forgotten FROM counter").get();
  return counter ?? { revision: 0n, forgotten: 0n };
}

export function readEntries(database: Database, wanted: Wanted): readonly Entry[] {
  return entryRows(database, wanted).map(({ key, value, revision }) => ({ key, value, revision: String(revision) }));
}

function entryRows(database: Database, wanted: Wanted): readonly EntryRow[] {
  if (wanted.kind === "key") {
    return database.query<EntryRow, [string]>("SELECT key, value, revision FROM entry WHERE key = ?").all(wanted.key);
  }
  const { prefix, limit = -1, after } = wanted;
  return database
    .query<EntryRow, [string, string | null, string | null, number]>(
      `SELECT key, value, revision FROM entry
       WHERE key >= ?1 AND (?2 IS NULL OR key < ?2) AND (?3 IS NULL OR key > ?3) ORDER BY key LIMIT ?4`,
    )
    .all(prefix, prefixEnd(prefix) ?? null, after ?? null, limit);
}

/** The current revision of a key; `undefined` if it does not exist. */
export function revisionOf(database: Database, key: string): string | undefined {
  const row = database.query<{ revision: bigint }, [string]>("SELECT revision FROM entry WHERE key = ?").get(key);
  return row ? String(row.revision) : undefined;
}

/** Writes the changes under the next revision, and logs them. */
export function writeChanges(database: Database, changes: readonly Change[], limits: HistoryLimits): bigint {
  const revision = readCounter(database).revision + 1n;
  changes.forEach((change, position) => {
    if (change.kind === "expect") return;
    const value = change.kind === "delete" ? null : change.value;
    if (value === null) database.query("DELETE FROM entry WHERE key = ?").run(change.key);
    else {
      database
        .query(
          `INSERT INTO entry VALUES (?1, ?2, ?3)
           ON CONFLICT (key) DO UPDATE SET value = excluded.value, revision = excluded.revision`,
        )
        .run(change.key, value, revision);
    }
    database.query("INSERT INTO change VALUES (?, ?, ?, ?)").run(revision, position, change.key, value);
  });
  database.query("UPDATE counter SET revision = ?").run(revision);
  if (revision % TRIM_EVERY === 0n) trimHistory(database, limits);
  return revision;
}

/** Deletes the oldest changes, whole commits at a time, until the log is within its limits. */
function trimHistory(database: Database, limits: HistoryLimits): void {
  const { revision, forgotten } = readCounter(database);
  const tooMany = revision - limits.revisions;
  const tooLarge = database
    .query<{ revision: bigint }, [bigint]>(
      `SELECT revision FROM
         (SELECT revision, sum(octet_length(value)) OVER (ORDER BY revision DESC, position) AS bytes FROM change)
       WHERE bytes > ? ORDER BY revision DESC LIMIT 1`,
    )
    .get(limits.bytes)?.revision;
  const upTo = tooLarge !== undefined && tooLarge > tooMany ? tooLarge : tooMany;
  if (upTo <= forgotten) return;
  database.query("DELETE FROM change WHERE revision <= ?").run(upTo);
  database.query("UPDATE counter SET forgotten = ?").run(upTo);
}

export function readChanges(database: Database, prefix: string, after: bigint): readonly DatastoreEvent[] {
  return database
    .query<ChangeRow, [bigint, string, string | null]>(
      `SELECT key, value, revision FROM change
       WHERE revision > ?1 AND key >= ?2 AND (?3 IS NULL OR key < ?3) ORDER BY revision, position`,
    )
    .all(after, prefix, prefixEnd(prefix) ?? null)
    .map(toEvent);
}

function toEvent({ key, value, revision: count }: ChangeRow): DatastoreEvent {
  const revision = String(count);
  return value === null ? { kind: "delete", key, revision } : { kind: "put", entry: { key, value, revision } };
}
