/**
 * The datastore of tests and of the scale benchmark: everything in one
 * process's memory, with the round trips counted that a server would see.
 */
import type { Change, Datastore, DatastoreEvent, Decide, Snapshot, Transacted, Wanted, Written } from "../datastore.ts";
import { requireCommittable } from "../preconditions.ts";
import { transactOn } from "../transact.ts";
import { MemoryTable } from "./table.ts";

export function openMemory(table: MemoryTable = new MemoryTable()): MemoryDatastore {
  return new MemoryDatastore(table);
}

export class MemoryDatastore implements Datastore {
  /** How many requests this connection has made. */
  roundTrips = 0;
  private readonly closing = new AbortController();

  constructor(private readonly table: MemoryTable) {}

  async read(wanted: readonly Wanted[]): Promise<Snapshot> {
    this.roundTrips += 1;
    return { revision: this.table.revision, answers: wanted.map((each) => this.table.answer(each)) };
  }

  async commit(changes: readonly Change[]): Promise<Written> {
    requireCommittable(changes);
    this.roundTrips += 1;
    return this.table.commit(changes);
  }

  transact<Outcome>(wanted: readonly Wanted[], decide: Decide<Outcome>): Promise<Transacted<Outcome>> {
    return transactOn(this, wanted, decide);
  }

  async *watch(prefix: string, from: string, signal: AbortSignal): AsyncIterable<DatastoreEvent> {
    this.roundTrips += 1;
    const stop = AbortSignal.any([signal, this.closing.signal]);
    let seen = BigInt(from);
    while (!stop.aborted) {
      const committed = this.nextCommit(stop);
      const events = this.table.eventsAfter(seen).filter((event) => keyOf(event).startsWith(prefix));
      seen = BigInt(this.table.revision);
      const bookmark = { kind: "bookmark", revision: String(seen) } as const;
      for (const event of [...events, bookmark]) {
        yield event;
        if (stop.aborted) return;
      }
      await committed;
    }
  }

  async close(): Promise<void> {
    this.closing.abort();
  }

  private nextCommit(stop: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = () => resolve();
    const forget = this.table.onCommit(wake);
    stop.addEventListener("abort", wake, { once: true });
    return promise.finally(() => {
      forget();
      stop.removeEventListener("abort", wake);
    });
  }
}

function keyOf(event: DatastoreEvent): string {
  if (event.kind === "put") return event.entry.key;
  return event.kind === "delete" ? event.key : "";
}
