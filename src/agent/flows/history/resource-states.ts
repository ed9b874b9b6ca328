/**
 * Resources as they were: for `flows explain`, each state of each resource, as long as the history has flows of that time.
 *
 * The agent tells all of them when the collector has started, and then what changes. What it does not tell again soon after a
 * start is gone since.
 */
import type { Database } from "bun:sqlite";
import type { SeenResource } from "../flow-sink.ts";
import { type Dictionary, NO_ROW } from "./dictionary.ts";

/** `value`: in the dictionary of contents; NULL: it is gone from then on. */
export const RESOURCE_SCHEMA = `
  CREATE TABLE resource (
    kind TEXT NOT NULL, key TEXT NOT NULL, since INTEGER NOT NULL, value INTEGER,
    PRIMARY KEY (kind, key, since)
  ) WITHOUT ROWID;`;

/** Texts that the dictionary of contents must not remove. */
export const CONTENT_OF_RESOURCES = "id IN (SELECT value FROM resource WHERE value IS NOT NULL)";

export interface ResourceState {
  readonly kind: string;
  readonly key: string;
  readonly value: string;
}

interface StateRow {
  readonly kind: string;
  readonly key: string;
  readonly value: number | null;
}

export class ResourceStates {
  /** Those of an earlier collector that were not told again yet. */
  private unconfirmed = new Map<string, StateRow>();
  private isTold = false;

  constructor(
    private readonly database: Database,
    private readonly contents: Dictionary,
  ) {
    for (const row of this.latest()) if (row.value !== null) this.unconfirmed.set(nameOf(row), row);
  }

  /** Until the agent has told anything, nothing is known. */
  get hasUnconfirmed(): boolean {
    return this.isTold && this.unconfirmed.size > 0;
  }

  /** Part of a transaction. */
  write(resources: readonly SeenResource[], since: number): void {
    this.isTold ||= resources.length > 0;
    for (const { kind, key, value } of resources) {
      this.unconfirmed.delete(nameOf({ kind, key }));
      const id = value === undefined ? null : this.contents.idOf(value, NO_ROW);
      if (this.latestOf(kind, key) !== id) this.insert({ kind, key, value: id }, since);
    }
  }

  /** Part of a transaction: what was not told again is gone since `since`. */
  removeUnconfirmed(since: number): void {
    for (const row of this.unconfirmed.values()) this.insert({ ...row, value: null }, since);
    this.unconfirmed = new Map();
  }

  /** As they are now, as far as the agent has told them. */
  current(): readonly ResourceState[] {
    return this.latest().flatMap((row) =>
      row.value === null || this.unconfirmed.has(nameOf(row)) ? [] : [this.stateOf(row)],
    );
  }

  /** `undefined`: not known, or not any more. */
  at(time: number): readonly ResourceState[] | undefined {
    const known = this.database.query<{ since: number | null }, []>("SELECT min(since) AS since FROM resource").get();
    if (known?.since === null || known === null || known.since > time) return undefined;
    const rows = this.database
      .query<StateRow, [number]>(
        `SELECT kind, key, value FROM (SELECT kind, key, value, max(since) FROM resource WHERE since <= ? GROUP BY kind, key)
         WHERE value IS NOT NULL`,
      )
      .all(time);
    return rows.map((row) => this.stateOf(row));
  }

  /** Removes states that ended before this time. */
  removeBefore(time: number): void {
    this.database
      .query(
        `DELETE FROM resource WHERE since < ?1 AND
         EXISTS (SELECT 1 FROM resource AS later WHERE later.kind = resource.kind AND later.key = resource.key
                 AND later.since > resource.since AND later.since <= ?1)`,
      )
      .run(time);
    this.database
      .query(
        `DELETE FROM resource WHERE value IS NULL AND since < ?1 AND
         NOT EXISTS (SELECT 1 FROM resource AS former WHERE former.kind = resource.kind AND former.key = resource.key
                     AND former.since < resource.since)`,
      )
      .run(time);
  }

  private stateOf({ kind, key, value }: StateRow): ResourceState {
    return { kind, key, value: this.contents.textOf(value ?? 0) ?? "" };
  }

  private latest(): readonly StateRow[] {
    return this.database
      .query<StateRow, []>(
        "SELECT kind, key, value FROM (SELECT kind, key, value, max(since) FROM resource GROUP BY kind, key)",
      )
      .all();
  }

  private latestOf(kind: string, key: string): number | null {
    const row = this.database
      .query<StateRow, [string, string]>(
        "SELECT kind, key, value FROM resource WHERE kind = ? AND key = ? ORDER BY since DESC LIMIT 1",
      )
      .get(kind, key);
    return row?.value ?? null;
  }

  private insert({ kind, key, value }: StateRow, since: number): void {
    this.database.query("INSERT OR REPLACE INTO resource VALUES (?, ?, ?, ?)").run(kind, key, since, value);
  }
}

function nameOf({ kind, key }: Pick<StateRow, "kind" | "key">): string {
  return `${kind} ${key}`;
}
