/**
 * The file of the history: a SQLite database that only root may read, never larger than its limit.
 *
 *   history.db           records, each change a new row; roll-ups; states of resources; times without a collector; losses
 *   history.db.damaged   one that could not be read, kept once
 *   switched-off         since when flows are switched off
 *
 * Space: the file has at most so many pages, and what is written ahead (WAL) is small, since a transaction writes few rows and
 * is carried over soon after. Before each transaction the oldest rows make room. All methods may throw what SQLite throws; a
 * transaction is done as a whole or not at all, also if the process is killed.
 */
import { Database } from "bun:sqlite";
import { chmodSync, closeSync, mkdirSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import type { FlowRecord } from "../../../flows/flow-record.ts";
import type { OpenRecords, SeenFlow, SeenResource } from "../flow-sink.ts";
import { DamagedFile, DICTIONARY_TABLES, dictionarySchema } from "./dictionary.ts";
import { AGE_SCHEMA, HistoryAge, type Moment } from "./history-age.ts";
import { type CountedLosses, LOSS_SCHEMA, LossRows } from "./losses.ts";
import {
  type Dictionaries,
  type FormerRow,
  forgetAll,
  openDictionaries,
  RECORD_SCHEMA,
  type RecordRow,
  RecordRows,
  STATES,
} from "./record-row.ts";
import { CONTENT_OF_RESOURCES, RESOURCE_SCHEMA, ResourceStates } from "./resource-states.ts";
import { MINUTE, type PendingSums, ROLLUP_SCHEMA, Rollups } from "./rollups.ts";
import { forgetSwitchedOff, switchedOffSince } from "./switched-off.ts";

const SCHEMA_VERSION = 2;
const PAGE_BYTES = 4096;
/** Carried over to the file then. */
const WAL_PAGES = 128;
const WAL_RESERVE_BYTES = 2_000_000;
/** Of one transaction. */
export const MOST_ROWS = 1_000;
/** Room for one transaction, also if all names and roll-ups in it are new. */
const FREE_PAGES = 250;
const TRIMMED_ROWS = 500;
const MOST_ROUNDS = 10;
/** Of the whole: roll-ups, and what `flows explain` needs. */
const ROLLUP_SHARE = 0.3;
const CONTENT_SHARE = 0.25;
/** The clock was set, if the time at which the history was opened differs by more. */
const SET_CLOCK_MILLISECONDS = 1_000;
/** Roll-ups are kept so much longer than records. */
export const ROLLUP_AGES = 7;
/** A larger file is not read as a whole before it is used. */
const LARGEST_CHECKED_BYTES = 300_000_000;
const CHECKED_PIECES = 20;
const ENDED = STATES.indexOf("ended");
/** Of `note`. */
const REMOVED = "removed until";

export interface StoreLimits {
  readonly bytes: number;
  readonly milliseconds: number;
}

export interface StoreOptions {
  readonly directory: string;
  readonly node: string;
  readonly limits: StoreLimits;
}

export interface Batch {
  /** At most `MOST_ROWS`. */
  readonly records: readonly SeenFlow[];
  readonly resources: readonly { readonly resources: readonly SeenResource[]; readonly since: number }[];
  /** Roll-ups, to which those of the records are added; whoever calls this has to drop them if it fails. */
  readonly sums: PendingSums;
  readonly moment: Moment;
}

/** What a transaction was about. A record may be put many times: each of these is told once. */
export interface Stored {
  /** Seen for the first time. */
  readonly begun: readonly FlowRecord[];
  readonly ended: readonly FlowRecord[];
  /** In records of denied packets, more than before. */
  readonly deniedPackets: number;
}

const SCHEMA = [
  "CREATE TABLE note (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;",
  // `age`: of the history when the gap began.
  "CREATE TABLE gap (id INTEGER PRIMARY KEY, since INTEGER NOT NULL, until INTEGER NOT NULL, age INTEGER NOT NULL);",
  ...[AGE_SCHEMA, RECORD_SCHEMA, ROLLUP_SCHEMA, RESOURCE_SCHEMA],
  ...DICTIONARY_TABLES.map(dictionarySchema),
  `PRAGMA user_version = ${SCHEMA_VERSION};`,
].join("\n");

export function historyPath(directory: string): string {
  return `${directory}/history.db`;
}

/** Puts the file aside, in place of one that was put aside before. */
export function setAside(directory: string): void {
  const path = historyPath(directory);
  renameSync(path, `${path}.damaged`);
  for (const ending of ["-wal", "-shm", "-journal"]) rmSync(`${path}${ending}`, { force: true });
}

export class FlowStore {
  readonly dictionaries: Dictionaries;
  readonly rows: RecordRows;
  readonly rollups: Rollups;
  readonly resources: ResourceStates;
  private lastSeq: number;
  private lastPut: number;
  private alive: number | undefined;
  private readonly age: HistoryAge;
  private readonly lossRows: LossRows;
  /** Of this collector. */
  private losses: CountedLosses | undefined;
  /** The time without a collector before this one, while its end is known by the clock only. */
  private gap: { readonly id: number; readonly since: number; until: number } | undefined;

  private constructor(
    readonly database: Database,
    private readonly options: StoreOptions,
    private limits: StoreLimits,
    private readonly opened: Moment,
  ) {
    this.age = new HistoryAge(database, opened.elapsed);
    this.lossRows = new LossRows(database);
    this.dictionaries = openDictionaries(database);
    this.rows = new RecordRows(database, this.dictionaries, options.node);
    this.rollups = new Rollups(database);
    this.resources = new ResourceStates(database, this.dictionaries.contents);
    [this.lastSeq, this.lastPut] = this.newest();
  }

  /** Throws `DamagedFile`, or what SQLite throws. */
  static open(options: StoreOptions, moment: Moment): FlowStore {
    const { directory, limits } = options;
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    chmodSync(directory, 0o700);
    const path = historyPath(directory);
    // SQLite would make it readable for others, and gives its other files the mode of this one.
    closeSync(openSync(path, "a", 0o600));
    chmodSync(path, 0o600);
    const database = new Database(path, { readwrite: true, create: false });
    try {
      prepare(database, limits);
      const store = new FlowStore(database, options, limits, moment);
      store.transaction(() => store.noteStart(moment.now, switchedOffSince(directory)));
      forgetSwitchedOff(directory);
      return store;
    } catch (failure) {
      database.close();
      throw isDamage(failure) ? new DamagedFile(messageOf(failure)) : failure;
    }
  }

  get newestSeq(): number {
    return this.lastSeq;
  }

  /** When the newest row was written. */
  get newestPut(): number {
    return this.lastPut;
  }

  /** Of the file and what is written ahead. */
  get bytes(): number {
    const path = historyPath(this.options.directory);
    return ["", "-wal"].reduce((sum, end) => sum + (statSync(path + end, { throwIfNoEntry: false })?.size ?? 0), 0);
  }

  setLimits(limits: StoreLimits): void {
    this.limits = limits;
    limitPages(this.database, limits);
  }

  /** Removes the oldest rows until the batch fits, and writes it. */
  write({ records, resources, sums, moment }: Batch): Stored {
    const [begun, ended]: [FlowRecord[], FlowRecord[]] = [[], []];
    let deniedPackets = 0;
    this.transaction(() => {
      this.makeRoom(moment);
      for (const seen of records) {
        const former = this.rows.former(seen.record.id);
        const added = seen.added ?? addedSince(former, seen.record);
        // The former row of a connection that was quiet for long may be removed already.
        if (seen.added?.isNew ?? former === undefined) begun.push(seen.record);
        if (seen.record.state === "ended" && former?.state !== ENDED) ended.push(seen.record);
        if (seen.record.state === "denied") deniedPackets += added.packets;
        sums.add(seen.record, added);
        this.lastSeq += 1;
        this.lastPut = Math.max(this.lastPut, moment.now, seen.record.end);
        this.rows.write(seen, this.lastSeq, { put: this.lastPut, ...(former === undefined ? {} : { former }) });
      }
      for (const each of resources) this.resources.write(each.resources, each.since);
      this.rollups.write(sums.take(), this.age.at(moment.elapsed));
      this.noteMoment(moment);
    });
    return { begun, ended, deniedPackets };
  }

  /** The time without records is no time without a collector. */
  noteAlive(moment: Moment): void {
    this.transaction(() => this.noteMoment(moment));
  }

  /** Removes what is too old or not used any more, a part at a time. Returns whether there may be more. */
  tidy(moment: Moment): boolean {
    const { milliseconds } = this.limits;
    const age = this.age.at(moment.elapsed);
    let isMore = false;
    this.transaction(() => {
      isMore = this.removeOldest(TRIMMED_ROWS, this.age.newestAt(age - milliseconds) ?? 0);
      isMore = this.rollups.condense(age - milliseconds) || isMore;
      isMore = this.rollups.removeOldest(age - ROLLUP_AGES * milliseconds) || isMore;
    });
    return this.shrink(moment) || isMore;
  }

  /** Once a minute. */
  sweep({ now }: Moment): void {
    this.transaction(() => {
      const oldestSeq = this.oldestSeq() ?? this.lastSeq + 1;
      const { names, judgements, contents } = this.dictionaries;
      this.resources.removeBefore(Math.min(now, this.oldestStart() ?? now));
      names.removeUnused(oldestSeq);
      judgements.removeUnused(oldestSeq);
      contents.removeUnused(oldestSeq, CONTENT_OF_RESOURCES);
      this.rollups.tidy();
      this.age.removeBefore(oldestSeq);
      const oldestAge = this.oldestAge() ?? Number.MAX_SAFE_INTEGER;
      this.database.query("DELETE FROM gap WHERE age < ?").run(oldestAge);
      this.lossRows.removeBefore(oldestAge);
      // Content may not push all records out: then it is not known any more why older flows were decided as they were.
      if (contents.bytes > CONTENT_SHARE * this.limits.bytes) {
        this.resources.removeBefore(now);
        contents.removeUnused(Number.MAX_SAFE_INTEGER, CONTENT_OF_RESOURCES);
      }
    });
  }

  /** Some minutes after the start: resources that the agent has not told again are gone. */
  removeUnconfirmedResources(): void {
    if (this.resources.hasUnconfirmed) this.transaction(() => this.resources.removeUnconfirmed(this.opened.now));
  }

  /** Until then an earlier collector has summed what it followed. */
  get formerAlive(): number | undefined {
    return this.alive;
  }

  /** The newest first. Those beyond this number have ended for the history: nobody would end them. */
  openRecords(most: number): OpenRecords {
    const { changes } = this.database.run(
      "UPDATE record SET state = 1 WHERE state = 0 AND seq <= (SELECT seq FROM record WHERE state = 0 ORDER BY seq DESC LIMIT 1 OFFSET ?)",
      [most],
    );
    const records = this.database
      .query<RecordRow, [number]>("SELECT * FROM record WHERE state = 0 ORDER BY seq DESC LIMIT ?")
      .all(most)
      .flatMap((row) => this.rows.read(row) ?? []);
    return { records, leftOut: changes };
  }

  /** Milliseconds without a collector though flows were switched on, as far as the history goes back. */
  withoutCollector(): number {
    const oldest = this.oldestAge();
    if (oldest === undefined) return 0;
    const query = "SELECT sum(until - since) AS sum FROM gap WHERE age >= ?";
    return this.database.query<{ sum: number | null }, [number]>(query).get(oldest)?.sum ?? 0;
  }

  /** How far the records go back, in milliseconds during which this machine ran. */
  recordsAge({ elapsed }: Moment): number {
    const seq = this.oldestSeq();
    return seq === undefined ? 0 : this.age.at(elapsed) - this.age.of(seq);
  }

  /** What this collector has lost until now: it is stored with what comes next. */
  setLosses(losses: CountedLosses): void {
    this.losses = losses;
  }

  /** What earlier collectors have lost, as far as the history goes back. */
  formerLosses(): CountedLosses {
    return this.lossRows.former(this.oldestAge() ?? Number.MAX_SAFE_INTEGER);
  }

  note(name: string, value: number): void {
    this.database.query("INSERT OR REPLACE INTO note VALUES (?, ?)").run(name, value);
  }

  noted(name: string): number | undefined {
    const row = this.database.query<{ value: number }, [string]>("SELECT value FROM note WHERE name = ?").get(name);
    return row?.value;
  }

  /** When the newest of the records was written that were removed to make room, or by their age; `undefined`: none. */
  get removedUntil(): number | undefined {
    return this.noted(REMOVED);
  }

  oldestSeq(): number | undefined {
    return (
      this.database.query<{ seq: number | null }, []>("SELECT min(seq) AS seq FROM record").get()?.seq ?? undefined
    );
  }

  /** When the first row from this one on was written. */
  putAt(seq: number): { readonly seq: number; readonly put: number } | undefined {
    const query = "SELECT seq, put FROM record WHERE seq >= ? ORDER BY seq LIMIT 1";
    return this.database.query<{ seq: number; put: number }, [number]>(query).get(seq) ?? undefined;
  }

  close(moment: Moment): void {
    try {
      this.noteAlive(moment);
    } finally {
      this.abandon();
    }
  }

  /** Also of a damaged file. The file stays locked as long as there are prepared statements. */
  abandon(): void {
    const { names, judgements, contents } = this.dictionaries;
    for (const part of [names, judgements, contents, this.rows, this.rollups]) part.finalize();
    this.database.close();
  }

  private transaction(work: () => void): void {
    this.database.run("BEGIN IMMEDIATE");
    const before = [this.lastSeq, this.lastPut] as const;
    try {
      work();
      this.database.run("COMMIT");
    } catch (failure) {
      [this.lastSeq, this.lastPut] = before;
      if (this.database.inTransaction) this.database.run("ROLLBACK");
      forgetAll(this.dictionaries);
      this.rollups.forget();
      this.age.forget();
      this.lossRows.forget();
      throw isDamage(failure) ? new DamagedFile(messageOf(failure)) : failure;
    }
  }

  private noteStart(now: number, switchedOff: number | undefined): void {
    const since = this.noted("alive");
    this.alive = since;
    if (since !== undefined) {
      const until = Math.max(since, switchedOff ?? now);
      const added = this.database.query("INSERT INTO gap (since, until, age) VALUES (?, ?, ?)");
      const { lastInsertRowid } = added.run(since, until, this.age.former);
      if (switchedOff === undefined) this.gap = { id: Number(lastInsertRowid), since, until };
    }
    this.noteMoment(this.opened);
  }

  private noteMoment(moment: Moment): void {
    this.note("alive", moment.now);
    this.age.note(moment.elapsed, this.lastSeq);
    if (this.losses !== undefined) this.lossRows.note(this.losses, this.age.at(moment.elapsed));
    this.correctGap(moment);
  }

  /** By a clock that was wrong at the start, and was set since, the gap before ended at another time. */
  private correctGap({ now, elapsed }: Moment): void {
    const { gap, opened } = this;
    if (gap === undefined) return;
    const until = Math.max(gap.since, now - Math.round(elapsed - opened.elapsed));
    if (Math.abs(until - gap.until) < SET_CLOCK_MILLISECONDS) return;
    this.database.query("UPDATE gap SET until = ? WHERE id = ?").run(until, gap.id);
    gap.until = until;
  }

  private newest(): [number, number] {
    const query = "SELECT seq, put FROM record ORDER BY seq DESC LIMIT 1";
    const row = this.database.query<{ seq: number; put: number }, []>(query).get();
    // No number is given twice, though its row may be gone.
    return [Math.max(row?.seq ?? 0, this.age.newest), row?.put ?? 0];
  }

  private makeRoom({ elapsed }: Moment): void {
    // Not the minute that is being written.
    const before = this.age.at(elapsed) - MINUTE;
    if (this.hasManyRollups()) {
      for (let round = 0; round < MOST_ROUNDS && this.hasManyRollups(); round++) this.rollups.removeOldest(before);
      this.rollups.tidy();
    }
    const most = pagesOf(this.limits) - FREE_PAGES;
    // Far above a limit that was lowered, the next transactions do the rest.
    for (let round = 0; round < MOST_ROUNDS && this.usedPages() > most; round++) {
      if (this.removeOldest(TRIMMED_ROWS)) continue;
      if (!this.rollups.removeOldest(before)) return;
    }
  }

  private hasManyRollups(): boolean {
    return this.rollups.bytes > ROLLUP_SHARE * this.limits.bytes;
  }

  /** So many of the oldest rows, up to this one. Returns whether there were any. */
  private removeOldest(rows: number, last = this.lastSeq): boolean {
    const oldest = this.oldestSeq();
    if (oldest === undefined || oldest > last) return false;
    const newest = this.database
      .query<{ seq: number; put: number }, [number, number]>(
        "SELECT seq, put FROM (SELECT seq, put FROM record WHERE seq <= ? ORDER BY seq LIMIT ?) ORDER BY seq DESC LIMIT 1",
      )
      .get(last, rows);
    if (newest === null) return false;
    this.database.query("DELETE FROM record WHERE seq <= ?").run(newest.seq);
    this.note(REMOVED, newest.put);
    return true;
  }

  /** After the limit was lowered. */
  private shrink(moment: Moment): boolean {
    if (pragma(this.database, "page_count") <= pagesOf(this.limits)) return false;
    this.database.run("PRAGMA incremental_vacuum(500)");
    return pragma(this.database, "freelist_count") > 0 || this.makesRoom(moment);
  }

  private makesRoom(moment: Moment): boolean {
    this.transaction(() => this.makeRoom(moment));
    return pragma(this.database, "freelist_count") > 0;
  }

  private usedPages(): number {
    return pragma(this.database, "page_count") - pragma(this.database, "freelist_count");
  }

  /** When the oldest flow began that is kept. */
  private oldestStart(): number | undefined {
    const first = this.database.query<{ start: number }, []>("SELECT start FROM record ORDER BY seq LIMIT 1").get();
    const open = this.database
      .query<{ start: number | null }, []>("SELECT min(start) AS start FROM record WHERE state = 0")
      .get();
    if (first === null) return undefined;
    return Math.min(first.start, open?.start ?? first.start);
  }

  /** As far as the history goes back; `undefined`: it is empty. */
  private oldestAge(): number | undefined {
    const seq = this.oldestSeq();
    const ages = [seq === undefined ? undefined : this.age.of(seq), this.rollups.oldestAge()];
    const known = ages.filter((age) => age !== undefined);
    return known.length === 0 ? undefined : Math.min(...known);
  }
}

function addedSince(former: FormerRow | undefined, { sent, received }: FlowRecord) {
  const packets = sent.packets + received.packets;
  const bytes = sent.bytes + received.bytes;
  if (former === undefined) return { flows: 1, packets, bytes };
  return {
    flows: 0,
    packets: Math.max(0, packets - former.sent_packets - former.received_packets),
    bytes: Math.max(0, bytes - former.sent_bytes - former.received_bytes),
  };
}

function prepare(database: Database, limits: StoreLimits): void {
  // No other process opens the file, so there is no shared memory beside it.
  database.run("PRAGMA locking_mode = EXCLUSIVE");
  database.run("PRAGMA auto_vacuum = INCREMENTAL");
  database.run("PRAGMA journal_mode = WAL");
  // A killed process loses nothing; a power failure may lose the last seconds, but never damages the file.
  database.run("PRAGMA synchronous = NORMAL");
  database.run("PRAGMA temp_store = MEMORY");
  database.run(`PRAGMA wal_autocheckpoint = ${WAL_PAGES}`);
  database.run(`PRAGMA journal_size_limit = ${WAL_PAGES * PAGE_BYTES}`);
  const version = pragma(database, "user_version");
  if (version !== 0 && version !== SCHEMA_VERSION) throw new DamagedFile(`it is of version ${version}`);
  limitPages(database, limits);
  if (version === 0) database.transaction(() => database.run(SCHEMA)).immediate();
  else checkFile(database);
  database.run(LOSS_SCHEMA);
}

function checkFile(database: Database): void {
  if (pragma(database, "page_count") * PAGE_BYTES > LARGEST_CHECKED_BYTES) return;
  const answer = database.query<{ quick_check: string }, []>(`PRAGMA quick_check(${CHECKED_PIECES})`).get();
  if (answer?.quick_check !== "ok") throw new DamagedFile(answer?.quick_check ?? "it cannot be checked");
}

function limitPages(database: Database, limits: StoreLimits): void {
  database.run(`PRAGMA max_page_count = ${pagesOf(limits)}`);
}

function pagesOf({ bytes }: StoreLimits): number {
  return Math.floor((bytes - WAL_RESERVE_BYTES) / PAGE_BYTES);
}

function pragma(database: Database, name: string): number {
  const row = database.query<Record<string, number>, []>(`PRAGMA ${name}`).get();
  return row?.[name] ?? 0;
}

/** The content of a damaged file may also be text that is not JSON, or cannot be decompressed. */
export function isDamage(failure: unknown): boolean {
  if (failure instanceof DamagedFile || failure instanceof SyntaxError) return true;
  const code = failure instanceof Error && "code" in failure ? String(failure.code) : "";
  return code.startsWith("SQLITE_CORRUPT") || code.startsWith("SQLITE_NOTADB");
}

function messageOf(failure: unknown): string {
  return failure instanceof Error ? failure.message : String(failure);
}
