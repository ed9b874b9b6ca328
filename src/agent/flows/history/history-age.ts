/**
 * How old the history is, in milliseconds during which this machine ran: a clock that is set, or that is wrong until it is set,
 * neither removes the history nor keeps it. Times of records are those of the clock, and nothing is removed by them.
 *
 *   age    goes on with the time since the machine started; while it is switched off, the history does not become older
 *   mark   the number of the newest row at an age, the last one of each minute
 */
import type { Database } from "bun:sqlite";

/** The same moment, by two clocks. */
export interface Moment {
  /** By the clock: milliseconds since 1970. It may be set at any time. */
  readonly now: number;
  /** Since the machine started. Never goes back. */
  readonly elapsed: number;
}

const MARK_MILLISECONDS = 60_000;
/** Another process may read the time since the start less exactly. */
const INEXACT_MILLISECONDS = 60_000;

export const AGE_SCHEMA = `
  CREATE TABLE age (name TEXT PRIMARY KEY, milliseconds INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE mark (minute INTEGER PRIMARY KEY, age INTEGER NOT NULL, seq INTEGER NOT NULL);
  CREATE INDEX mark_seq ON mark (seq);`;

export class HistoryAge {
  private readonly base: number;
  private marked = 0;

  constructor(
    private readonly database: Database,
    private readonly opened: number,
  ) {
    this.base = this.noted("age") + millisecondsSince(this.noted("elapsed"), opened);
    this.forget();
  }

  at(elapsed: number): number {
    return Math.round(this.base + Math.max(0, elapsed - this.opened));
  }

  /** How old it was when it was written to for the last time. */
  get former(): number {
    return this.noted("age");
  }

  /** Part of a transaction. `newestSeq`: of the rows that are written. */
  note(elapsed: number, newestSeq: number): void {
    const age = this.at(elapsed);
    const put = this.database.query("INSERT OR REPLACE INTO age VALUES (?, ?)");
    put.run("age", age);
    put.run("elapsed", Math.round(elapsed));
    if (this.marked === newestSeq) return;
    const minute = Math.floor(age / MARK_MILLISECONDS);
    this.database.query("INSERT OR REPLACE INTO mark VALUES (?, ?, ?)").run(minute, age, newestSeq);
    this.marked = newestSeq;
  }

  /** The newest row that was marked, perhaps removed since. */
  get newest(): number {
    return this.marked;
  }

  /** The newest row of which it is sure that it was written at this age or before. */
  newestAt(age: number): number | undefined {
    const query = "SELECT seq FROM mark WHERE minute <= ? AND age <= ? ORDER BY minute DESC LIMIT 1";
    return this.database.query<{ seq: number }, [number, number]>(query).get(age / MARK_MILLISECONDS, age)?.seq;
  }

  /** Shortly before a row was written. */
  of(seq: number): number {
    const query = "SELECT age FROM mark WHERE seq < ? ORDER BY seq DESC LIMIT 1";
    return this.database.query<{ age: number }, [number]>(query).get(seq)?.age ?? 0;
  }

  /** Part of a transaction. */
  removeBefore(oldestSeq: number): void {
    this.database.query("DELETE FROM mark WHERE age < ?").run(this.of(oldestSeq));
  }

  /** A transaction has failed. */
  forget(): void {
    const query = "SELECT max(seq) AS seq FROM mark";
    this.marked = this.database.query<{ seq: number | null }, []>(query).get()?.seq ?? 0;
  }

  private noted(name: "age" | "elapsed"): number {
    const query = "SELECT milliseconds FROM age WHERE name = ?";
    return this.database.query<{ milliseconds: number }, [string]>(query).get(name)?.milliseconds ?? 0;
  }
}

/** Never more than it was: after a restart of the machine only what has passed since. */
function millisecondsSince(former: number, elapsed: number): number {
  const isSameStart = elapsed >= former - INEXACT_MILLISECONDS;
  return isSameStart ? Math.max(0, elapsed - former) : elapsed;
}
