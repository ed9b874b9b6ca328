/** A connection to a memory datastore that counts what a server would see of it. */
import type { DatastoreEvent, OrderedChange, Snapshot, Wanted, Written } from "../../src/datastore/datastore.ts";
import { MemoryDatastore } from "../../src/datastore/memory/memory.ts";
import type { MemoryTable } from "../../src/datastore/memory/table.ts";

export interface StoreCounts {
  readonly reads: number;
  /** Entries and bytes that were read. */
  readonly entries: number;
  readonly readBytes: number;
  readonly commits: number;
  /** Changed records. */
  readonly records: number;
  readonly writtenBytes: number;
  readonly events: number;
  readonly eventBytes: number;
}

export const NO_COUNTS: StoreCounts = {
  ...{ reads: 0, entries: 0, readBytes: 0, commits: 0, records: 0, writtenBytes: 0, events: 0, eventBytes: 0 },
};

export class CountedStore extends MemoryDatastore {
  private readonly now: { -readonly [Name in keyof StoreCounts]: number } = { ...NO_COUNTS };

  constructor(table: MemoryTable) {
    super(table);
  }

  get counts(): StoreCounts {
    return { ...this.now };
  }

  override async read(wanted: readonly Wanted[]): Promise<Snapshot> {
    const snapshot = await super.read(wanted);
    this.now.reads += 1;
    for (const { key, value } of snapshot.answers.flat()) {
      this.now.entries += 1;
      this.now.readBytes += key.length + value.length;
    }
    return snapshot;
  }

  override async commit(changes: readonly OrderedChange[]): Promise<Written> {
    const written = await super.commit(changes);
    this.now.commits += 1;
    // What is written twice in one commit is one record.
    const values = new Map<string, string>();
    for (const change of written.ok ? changes : []) {
      if (change.kind !== "expect") values.set(change.key, ("value" in change ? change.value : undefined) ?? "");
    }
    this.now.records += values.size;
    for (const [key, value] of values) this.now.writtenBytes += key.length + value.length;
    return written;
  }

  override async *watch(prefix: string, from: string, signal: AbortSignal): AsyncIterable<DatastoreEvent> {
    for await (const event of super.watch(prefix, from, signal)) {
      if (event.kind !== "bookmark") {
        const { key, value } = event.kind === "put" ? event.entry : { key: event.key, value: "" };
        this.now.events += 1;
        this.now.eventBytes += key.length + value.length;
      }
      yield event;
    }
  }
}

export function addCounts(all: readonly StoreCounts[]): StoreCounts {
  return combine(all, (left, right) => left + right);
}

export function countsSince(before: StoreCounts, after: StoreCounts): StoreCounts {
  return combine([after, before], (left, right) => left - right);
}

function combine(all: readonly StoreCounts[], of: (left: number, right: number) => number): StoreCounts {
  const each = (name: keyof StoreCounts) => all.map((counts) => counts[name]).reduce(of);
  return {
    ...{ reads: each("reads"), entries: each("entries"), readBytes: each("readBytes") },
    ...{ commits: each("commits"), records: each("records"), writtenBytes: each("writtenBytes") },
    ...{ events: each("events"), eventBytes: each("eventBytes") },
  };
}
