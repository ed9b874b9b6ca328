/**
 * The content of a memory datastore: entries sorted by key, and the history
 * that watches read. Several connections may share one table.
 */
import { type Change, type DatastoreEvent, type Entry, HistoryGone, type Wanted, type Written } from "../datastore.ts";
import { compareKeys } from "../key-order.ts";
import { findRefusal } from "../preconditions.ts";

interface Commit {
  readonly revision: bigint;
  readonly events: readonly DatastoreEvent[];
}

export class MemoryTable {
  private readonly entries = new Map<string, Entry>();
  private readonly sortedKeys: string[] = [];
  private history: Commit[] = [];
  private forgottenUpTo: bigint;
  private readonly listeners = new Set<() => void>();

  constructor(
    private currentRevision = 1n,
    private readonly historyLimit = 10_000,
  ) {
    this.forgottenUpTo = currentRevision;
  }

  get revision(): string {
    return String(this.currentRevision);
  }

  answer(wanted: Wanted): readonly Entry[] {
    if (wanted.kind === "prefix")
      return this.below(wanted.prefix, wanted.limit ?? Number.POSITIVE_INFINITY, wanted.after);
    const entry = this.entries.get(wanted.key);
    return entry ? [entry] : [];
  }

  /** From the key on, up to `end`; to the last key if there is no end. */
  range(from: string, end?: string, limit = Number.POSITIVE_INFINITY): readonly Entry[] {
    const start = this.positionOf(from);
    const stop = end === undefined ? this.sortedKeys.length : this.positionOf(end);
    return this.sortedKeys.slice(start, Math.min(stop, start + limit)).flatMap((key) => this.entries.get(key) ?? []);
  }

  commit(changes: readonly Change[]): Written {
    const refusal = findRefusal(changes, (key) => this.entries.get(key)?.revision);
    if (refusal) return refusal;
    if (changes.every((change) => change.kind === "expect")) return { ok: true, revision: this.revision };

    this.currentRevision += 1n;
    const events = changes.flatMap((change) => this.apply(change, this.revision));
    this.history.push({ revision: this.currentRevision, events });
    this.trimHistory();
    for (const wake of this.listeners) wake();
    return { ok: true, revision: this.revision };
  }

  /** Turns an update to the current value into a change that writes nothing. */
  unlessSame(change: Change): Change {
    const entry = this.entries.get(change.key);
    const isSame = change.kind === "update" && entry?.value === change.value;
    return isSame ? { kind: "expect", key: change.key, revision: change.revision } : change;
  }

  /** Every event after the revision; throws `HistoryGone` if some of them were trimmed. */
  eventsAfter(from: bigint): readonly DatastoreEvent[] {
    if (from < this.forgottenUpTo || from > this.currentRevision) throw new HistoryGone(String(from));
    const first = this.history.findLastIndex((commit) => commit.revision <= from) + 1;
    return this.history.slice(first).flatMap((commit) => commit.events);
  }

  get forgotten(): bigint {
    return this.forgottenUpTo;
  }

  forgetHistory(): void {
    this.forgottenUpTo = this.currentRevision;
    this.history = [];
  }

  /** Calls back after every commit until the returned function is called. */
  onCommit(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Not after every commit, because trimming copies the rest. */
  private trimHistory(): void {
    if (this.history.length <= this.historyLimit * 2) return;
    const first = this.history.length - this.historyLimit;
    this.forgottenUpTo = this.history[first - 1]?.revision ?? this.forgottenUpTo;
    this.history = this.history.slice(first);
  }

  private below(prefix: string, limit: number, after: string | undefined): readonly Entry[] {
    const found: Entry[] = [];
    for (let index = this.positionOf(prefix); index < this.sortedKeys.length && found.length < limit; index++) {
      const key = this.sortedKeys[index];
      if (key === undefined || !key.startsWith(prefix)) break;
      if (after !== undefined && compareKeys(key, after) <= 0) {
        index = Math.max(index, this.positionOf(after) - 1);
        continue;
      }
      const entry = this.entries.get(key);
      if (entry) found.push(entry);
    }
    return found;
  }

  private apply(change: Change, revision: string): DatastoreEvent[] {
    if (change.kind === "expect") return [];
    const { key } = change;
    if (change.kind === "delete") {
      this.entries.delete(key);
      this.sortedKeys.splice(this.positionOf(key), 1);
      return [{ kind: "delete", key, revision }];
    }
    const entry = { key, value: change.value, revision };
    if (!this.entries.has(key)) this.sortedKeys.splice(this.positionOf(key), 0, key);
    this.entries.set(key, entry);
    return [{ kind: "put", entry }];
  }

  /** The position of the key among the sorted keys, or the position to insert it. */
  private positionOf(key: string): number {
    let low = 0;
    let high = this.sortedKeys.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (compareKeys(this.sortedKeys[middle] ?? "", key) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
