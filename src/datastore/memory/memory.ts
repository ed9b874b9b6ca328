/**
 * The datastore of tests and of the scale benchmark: everything in one
 * process's memory, at either level of atomicity. Counts the round trips that a
 * server would see.
 */
import type {
  Atomicity,
  Change,
  Datastore,
  DatastoreEvent,
  Decide,
  OrderedChange,
  Snapshot,
  Transacted,
  Wanted,
  Written,
} from "../datastore.ts";
import { asOneTransaction, commitInOrder } from "../ordered-changes.ts";
import { transactOn } from "../transact.ts";
import { transactOneByOne } from "../transact-one-by-one.ts";
import { MemoryTable } from "./table.ts";

export interface MemoryOptions {
  /** At the one-object level, writing the same value again changes nothing, not even the revision. */
  readonly atomicity?: Atomicity;
  /** Executes every request that a server would see: a test can stop, delay or observe them here. */
  readonly around?: <Answer>(kind: "read" | "write", request: () => Answer) => Promise<Answer>;
}

export function openMemory(table: MemoryTable = new MemoryTable(), options: MemoryOptions = {}): MemoryDatastore {
  return new MemoryDatastore(table, options);
}

export class MemoryDatastore implements Datastore {
  readonly atomicity: Atomicity;
  /** The number of requests on this connection. */
  roundTrips = 0;
  private readonly closing = new AbortController();

  constructor(
    private readonly table: MemoryTable,
    private readonly options: MemoryOptions = {},
  ) {
    this.atomicity = options.atomicity ?? "all changes";
  }

  async read(wanted: readonly Wanted[]): Promise<Snapshot> {
    return this.request("read", () => ({
      revision: this.table.revision,
      answers: wanted.map((each) => this.table.answer(each)),
    }));
  }

  async commit(changes: readonly OrderedChange[]): Promise<Written> {
    const write = (some: readonly Change[]) =>
      this.request(some.every(({ kind }) => kind === "expect") ? "read" : "write", () => this.table.commit(some));
    if (this.atomicity === "all changes") return write(asOneTransaction(changes));
    return commitInOrder(changes, (some) => write(some.map((change) => this.table.unlessSame(change))));
  }

  transact<Outcome>(wanted: readonly Wanted[], decide: Decide<Outcome>): Promise<Transacted<Outcome>> {
    if (this.atomicity === "one object") return transactOneByOne(this, wanted, decide);
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

  private async request<Answer>(kind: "read" | "write", request: () => Answer): Promise<Answer> {
    this.roundTrips += 1;
    const { around } = this.options;
    return around ? around(kind, request) : request();
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
