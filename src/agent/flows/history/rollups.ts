/**
 * Who talked to whom: the flows of each minute, summed by the workloads of both ends, protocol, port, verdict and rules.
 *
 * Kept longer than single records, as minutes and later as hours. One with many ports (a scan) or many workloads cannot fill
 * the history: in a minute with too many different sums ports are left out, then the rest is counted as not stored.
 */
import type { Database } from "bun:sqlite";
import type { FlowFilter, FlowGroup, FlowRollup } from "../../../flows/flow-answer.ts";
import { matcherOf } from "../../../flows/flow-query.ts";
import type { FlowDecision, FlowEnd, FlowRecord } from "../../../flows/flow-record.ts";
import { visibleRollup } from "../../../flows/visible-flows.ts";
import type { FlowCounts } from "../flow-sink.ts";
import { Dictionary } from "./dictionary.ts";

export const MINUTE = 60_000;
const HOUR_MINUTES = 60;
const ROW_BYTES = 30;
const USED_AHEAD_MINUTES = 10;
const MOST_IN_MINUTE = 10_000;
/** Of the history, for each sum of a minute; a small history has fewer. */
const BYTES_FOR_SUM = 4_000;
/** Parts of flows come so late, when their names are sure. From an earlier minute on, the clock was set back. */
const LATE_MINUTES = 2;
/** Beyond the first limit: sums without ports, this share more. */
const WITHOUT_PORTS = 0.2;

export type RollupKey = Pick<FlowRollup, "source" | "destination" | "protocol" | "port" | "verdict" | "rules">;

/** `span`: minutes. `age`: of the history when the minute was written to for the last time (history-age.ts). */
export const ROLLUP_SCHEMA = `
  CREATE TABLE rollup (
    minute INTEGER NOT NULL, span INTEGER NOT NULL, key INTEGER NOT NULL,
    flows INTEGER NOT NULL, packets INTEGER NOT NULL, bytes INTEGER NOT NULL,
    PRIMARY KEY (minute, span, key)
  ) WITHOUT ROWID;
  CREATE TABLE rollup_minute (
    minute INTEGER NOT NULL, span INTEGER NOT NULL, age INTEGER NOT NULL,
    PRIMARY KEY (minute, span)
  ) WITHOUT ROWID;
  CREATE INDEX rollup_age ON rollup_minute (age);`;

export function rollupKeyOf({ source, destination, backend, protocol, verdict, decisions }: FlowRecord): RollupKey {
  const target = backend ?? destination;
  return {
    ...{ source: groupOf(source), destination: groupOf(target), protocol },
    ...(target.port === undefined ? {} : { port: target.port }),
    ...{ verdict, rules: decisions.flatMap((decision) => ruleText(decision) ?? []) },
  };
}

function groupOf({ kind, namespace, name, owner }: FlowEnd): FlowGroup {
  if (kind === "outside" || kind === "hidden") return { kind };
  return {
    kind,
    ...(namespace === undefined ? {} : { namespace }),
    ...(owner === undefined ? (name === undefined ? {} : { name }) : { name: owner.name, ownerKind: owner.kind }),
  };
}

function ruleText({ point, rule }: FlowDecision): string | undefined {
  return rule === undefined ? undefined : `${point}: ${rule}`;
}

interface Sum {
  /** Its first part in this minute. */
  readonly isNew: boolean;
  readonly minute: number;
  readonly key: RollupKey;
  flows: number;
  packets: number;
  bytes: number;
}

/** Sums in memory, until they are stored. */
export class PendingSums {
  private sums = new Map<string, Sum>();
  private minute = 0;
  private readonly inMinute = new Set<string>();
  /** Of flows that are in no sum. */
  leftOut = 0;
  private readonly most: number;

  /** `bytes`: of the whole history. */
  constructor(bytes: number) {
    this.most = Math.min(MOST_IN_MINUTE, Math.floor(bytes / BYTES_FOR_SUM));
  }

  get isEmpty(): boolean {
    return this.sums.size === 0;
  }

  get flows(): number {
    return this.sums.values().reduce((sum, { flows }) => sum + flows, 0);
  }

  add(record: FlowRecord, counts: FlowCounts): void {
    const minute = Math.floor(record.end / MINUTE);
    const admitted = this.admit(record, minute);
    if (admitted === undefined) {
      this.leftOut += counts.flows;
      return;
    }
    const { text, isNew } = admitted;
    const known = this.sums.get(text);
    if (known === undefined) {
      const key = rollupKeyOf(record);
      const { port, ...others } = key;
      this.sums.set(text, { isNew, minute, key: text.startsWith(NO_PORT) ? others : key, ...counts });
    } else {
      known.flows += counts.flows;
      known.packets += counts.packets;
      known.bytes += counts.bytes;
    }
  }

  take(): readonly Sum[] {
    const taken = [...this.sums.values()];
    this.sums = new Map();
    return taken;
  }

  /** The sum that a record is added to. */
  private admit(record: FlowRecord, minute: number): { readonly text: string; readonly isNew: boolean } | undefined {
    if (minute > this.minute || minute < this.minute - LATE_MINUTES) {
      this.minute = minute;
      this.inMinute.clear();
    }
    const rest = textOf(record, minute);
    const withPort = `${(record.backend ?? record.destination).port ?? NO_PORT}${rest}`;
    if (this.inMinute.has(withPort)) return { text: withPort, isNew: false };
    const text = this.inMinute.size < this.most ? withPort : `${NO_PORT}${rest}`;
    const isNew = !this.inMinute.has(text);
    if (isNew && this.inMinute.size >= this.most * (1 + WITHOUT_PORTS)) return undefined;
    this.inMinute.add(text);
    return { text, isNew };
  }
}

const NO_PORT = "-";

/** Faster than JSON, since this is done for each of many thousand flows in a second. No name contains a zero. */
function textOf({ source, destination, backend, protocol, verdict, decisions }: FlowRecord, minute: number): string {
  let text = `\0${minute}\0${protocol}\0${verdict}\0${endText(source)}\0${endText(backend ?? destination)}`;
  for (const { point, rule } of decisions) if (rule !== undefined) text += `\0${point}\0${rule}`;
  return text;
}

function endText({ kind, namespace = "", name = "", owner }: FlowEnd): string {
  if (kind === "outside") return kind;
  return owner === undefined ? `${kind}\0${namespace}\0${name}` : `${kind}\0${namespace}\0${owner.kind}\0${owner.name}`;
}

export class Rollups {
  private readonly keys: Dictionary;
  private rows: number;
  private keyBytes: number;

  private readonly added;

  constructor(private readonly database: Database) {
    this.added = database.prepare<undefined, number[]>(
      `INSERT INTO rollup VALUES (?1, 1, ?2, ?3, ?4, ?5)
       ON CONFLICT DO UPDATE SET flows = flows + ?3, packets = packets + ?4, bytes = bytes + ?5`,
    );
    this.keys = new Dictionary(database, "rollup_key", USED_AHEAD_MINUTES);
    this.rows = this.count();
    this.keyBytes = this.keys.bytes;
  }

  /** About as many as they need in the file. */
  get bytes(): number {
    return this.rows * ROW_BYTES + 2 * this.keyBytes;
  }

  /** Part of a transaction. */
  write(sums: readonly Sum[], age: number): void {
    for (const minute of new Set(sums.map((sum) => sum.minute))) this.noteAge(minute, 1, age);
    for (const { minute, key, flows, packets, bytes } of sums) {
      this.added.run(minute, this.keys.idOf(JSON.stringify(key), minute), flows, packets, bytes);
    }
    for (const { isNew } of sums) if (isNew) this.rows += 1;
  }

  /** Turns the minutes of hours that were written before this age into hours, one minute at a time. Returns whether there may be more. */
  condense(before: number): boolean {
    const oldest = this.database
      .query<{ minute: number }, []>("SELECT minute FROM rollup_minute WHERE span = 1 ORDER BY age LIMIT 1")
      .get();
    if (oldest === null) return false;
    const { minute } = oldest;
    const hour = Math.floor(minute / HOUR_MINUTES) * HOUR_MINUTES;
    const newest = this.database
      .query<{ age: number }, [number, number]>(
        "SELECT max(age) AS age FROM rollup_minute WHERE span = 1 AND minute >= ? AND minute < ?",
      )
      .get(hour, hour + HOUR_MINUTES);
    if (newest === null || newest.age >= before) return false;
    this.database
      .query(
        `INSERT INTO rollup SELECT ?2, ${HOUR_MINUTES}, key, flows, packets, bytes FROM rollup WHERE minute = ?1 AND span = 1
         ON CONFLICT DO UPDATE SET flows = flows + excluded.flows, packets = packets + excluded.packets, bytes = bytes + excluded.bytes`,
      )
      .run(minute, hour);
    this.noteAge(hour, HOUR_MINUTES, newest.age);
    this.remove(minute, 1);
    return true;
  }

  /** Removes the oldest minute or hour that was written before this age. Returns whether there was one. */
  removeOldest(before: number): boolean {
    const oldest = this.database
      .query<{ minute: number; span: number }, [number]>(
        "SELECT minute, span FROM rollup_minute WHERE age < ? ORDER BY age, minute LIMIT 1",
      )
      .get(before);
    if (oldest === null) return false;
    this.rows = Math.max(0, this.rows - this.remove(oldest.minute, oldest.span));
    return true;
  }

  oldestAge(): number | undefined {
    const row = this.database.query<{ age: number | null }, []>("SELECT min(age) AS age FROM rollup_minute").get();
    return row?.age ?? undefined;
  }

  /** The first one from this one on. */
  nextMinute(minute: number): number | undefined {
    const query = "SELECT min(minute) AS minute FROM rollup WHERE minute >= ?";
    return this.database.query<{ minute: number | null }, [number]>(query).get(minute)?.minute ?? undefined;
  }

  oldestMinute(): number | undefined {
    const row = this.database.query<{ minute: number | null }, []>("SELECT min(minute) AS minute FROM rollup").get();
    return row?.minute ?? undefined;
  }

  tidy(): void {
    this.rows = this.count();
    this.keys.removeUnused((this.oldestMinute() ?? Number.MAX_SAFE_INTEGER) - HOUR_MINUTES);
    this.keyBytes = this.keys.bytes;
  }

  finalize(): void {
    this.added.finalize();
    this.keys.finalize();
  }

  forget(): void {
    this.keys.forget();
    this.rows = this.count();
  }

  /** Adds what begins in this range of minutes, and ends after `since`, by key. */
  addTo(into: Map<number, RollupSum>, [from, until]: readonly [number, number], since: number): void {
    const rows = this.database
      .query<RollupSum & { readonly key: number }, [number, number, number]>(
        `SELECT key, min(minute) AS first, max(minute + span) AS after, sum(flows) AS flows, sum(packets) AS packets,
         sum(bytes) AS bytes FROM rollup WHERE minute >= ? AND minute < ? AND minute + span > ? GROUP BY key`,
      )
      .all(from, until, since);
    for (const { key, ...row } of rows) {
      const sum = into.get(key);
      into.set(key, sum === undefined ? row : merged(sum, row));
    }
  }

  /** `undefined`: it does not match, or is there no more. */
  read(id: number, sum: RollupSum, { node, matches }: RollupReading): FlowRollup | undefined {
    const text = this.keys.textOf(id);
    if (text === undefined) return undefined;
    const key: RollupKey = JSON.parse(text);
    if (!matches(key)) return undefined;
    const { first, after, flows, packets, bytes } = sum;
    return { node, from: first * MINUTE, until: after * MINUTE, ...key, flows, packets, bytes };
  }

  private noteAge(minute: number, span: number, age: number): void {
    this.database
      .query("INSERT INTO rollup_minute VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE SET age = max(age, ?3)")
      .run(minute, span, age);
  }

  private remove(minute: number, span: number): number {
    this.database.query("DELETE FROM rollup_minute WHERE minute = ? AND span = ?").run(minute, span);
    return this.database.query("DELETE FROM rollup WHERE minute = ? AND span = ?").run(minute, span).changes;
  }

  private count(): number {
    return this.database.query<{ rows: number }, []>("SELECT count(*) AS rows FROM rollup").get()?.rows ?? 0;
  }
}

export interface RollupSum extends FlowCounts {
  readonly first: number;
  readonly after: number;
}

export interface RollupReading {
  readonly node: string;
  readonly matches: (key: RollupKey) => boolean;
}

export function merged(left: RollupSum, right: RollupSum): RollupSum {
  return {
    first: Math.min(left.first, right.first),
    after: Math.max(left.after, right.after),
    flows: left.flows + right.flows,
    packets: left.packets + right.packets,
    bytes: left.bytes + right.bytes,
  };
}

/** As `visibleMatcher()`: a name is that of the owner. Times are not looked at. */
export function rollupMatcher({
  query: { since, until, ...query },
  sight,
}: FlowFilter): (key: RollupKey, node: string) => boolean {
  const matches = matcherOf(query);
  const nothing = { packets: 0, bytes: 0 };
  const end = ({ ownerKind, ...group }: FlowGroup): FlowEnd => ({ ...group, address: "" });
  return (key, node) => {
    const rollup: FlowRollup = { ...key, node, from: 0, until: 0, flows: 0, packets: 0, bytes: 0 };
    const visible = sight === undefined ? rollup : visibleRollup(rollup, sight);
    if (visible === undefined) return false;
    const { source, destination, protocol, port, verdict, rules } = visible;
    return matches({
      ...{ id: "", node: visible.node, family: 4, protocol, source: end(source), direction: "both", verdict },
      destination: { ...end(destination), ...(port === undefined ? {} : { port }) },
      decisions: rules.map((text) => ({
        point: "host in",
        verdict: "allow",
        rule: text.slice(text.indexOf(": ") + 2),
      })),
      ...{ state: "ended", start: 0, end: 0, sent: nothing, received: nothing },
    });
  };
}
