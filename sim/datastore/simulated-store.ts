/**
 * A datastore server in memory, at either level of atomicity, behind a faulty network. It can be down for a while, forget
 * its history, and let the watches of a place lag behind.
 *
 * A connection promises what the stores of the product promise: a request without an answer is sent again for a while, and
 * then it is known whether its first copy took effect; only after that it fails, and then its last copy may still arrive.
 */
import type {
  Atomicity,
  Datastore,
  DatastoreEvent,
  Decide,
  OrderedChange,
  Snapshot,
  Transacted,
  Wanted,
  Written,
} from "../../src/datastore/datastore.ts";
import { openMemory } from "../../src/datastore/memory/memory.ts";
import { MemoryTable } from "../../src/datastore/memory/table.ts";
import { PluginError } from "../../src/errors.ts";
import { ServerClock, type ServerTime } from "../../src/server-clock.ts";
import { FaultyServer } from "../faults/faulty-server.ts";
import type { FaultyNetwork, RequestFailed } from "../faults/network.ts";
import { type Persistence, persist } from "../faults/persist.ts";
import type { FaultyStream } from "../faults/stream.ts";
import type { Traffic } from "../faults/traffic.ts";
import type { SimulatedProcess } from "../schedule/process.ts";

/** The events of one commit below the prefix, and a bookmark. */
type Batch = readonly DatastoreEvent[];

interface Watcher {
  readonly prefix: string;
  readonly stream: FaultyStream<Batch>;
}

export class SimulatedStore extends FaultyServer {
  readonly table = new MemoryTable();
  private readonly watchers = new Set<Watcher>();
  private seen = 1n;

  constructor(
    network: FaultyNetwork,
    private readonly options: { readonly atomicity: Atomicity },
  ) {
    super(network);
    this.table.onCommit(() => this.announce());
  }

  connect(process: SimulatedProcess, place: string): Datastore {
    return new Connection(this, { process, place, network: this.network, atomicity: this.options.atomicity });
  }

  compact(): void {
    this.table.forgetHistory();
  }

  /** Executed at the server. Throws `HistoryGone`. */
  startWatch(prefix: string, from: string, stream: FaultyStream<Batch>): void {
    const events = this.table.eventsAfter(BigInt(from)).filter((event) => isBelow(event, prefix));
    stream.send([...events, { kind: "bookmark", revision: this.table.revision }]);
    const watcher = { prefix, stream };
    this.watchers.add(watcher);
    stream.onClose(() => this.watchers.delete(watcher));
  }

  protected brokenWatch(): PluginError {
    return unavailable("the watch is broken");
  }

  /** Like etcd, tells a watch nothing about commits elsewhere, not even by a bookmark. */
  private announce(): void {
    const { revision } = this.table;
    const events = this.table.eventsAfter(this.seen);
    this.seen = BigInt(revision);
    for (const { prefix, stream } of this.watchers) {
      const own = events.filter((event) => isBelow(event, prefix));
      if (own.length > 0) stream.send([...own, { kind: "bookmark", revision }]);
    }
  }
}

interface ConnectionMeans {
  readonly process: SimulatedProcess;
  readonly place: string;
  readonly network: FaultyNetwork;
  readonly atomicity: Atomicity;
}

class Connection implements Datastore {
  readonly atomicity: Atomicity;
  private readonly memory: Datastore;
  private readonly closing = new AbortController();
  private readonly serverClock: ServerClock;

  constructor(
    private readonly server: SimulatedStore,
    private readonly means: ConnectionMeans,
  ) {
    this.atomicity = means.atomicity;
    this.serverClock = new ServerClock(means.process.elapsed, means.process.elapsed);
    const around = <Answer>(kind: "read" | "write", request: () => Answer) => this.send(kind, request);
    this.memory = openMemory(server.table, { atomicity: means.atomicity, around });
  }

  read(wanted: readonly Wanted[]): Promise<Snapshot> {
    this.count({ kind: "read", what: titleOf(wanted) });
    return this.memory.read(wanted);
  }

  commit(changes: readonly OrderedChange[]): Promise<Written> {
    return this.memory.commit(changes);
  }

  transact<Outcome>(wanted: readonly Wanted[], decide: Decide<Outcome>): Promise<Transacted<Outcome>> {
    this.count({ kind: "read", what: titleOf(wanted) });
    return this.memory.transact(wanted, decide);
  }

  async *watch(prefix: string, from: string, signal: AbortSignal): AsyncGenerator<DatastoreEvent> {
    const { process, place } = this.means;
    const stop = AbortSignal.any([signal, this.closing.signal]);
    if (stop.aborted) return;
    const stream = this.server.openStream<Batch>(process, place);
    try {
      this.count({ kind: "read", purpose: "watch", what: prefix });
      await this.send("read", () => this.server.startWatch(prefix, from, stream));
      for await (const batch of stream.receive(stop)) {
        for (const event of batch) {
          yield event;
          if (stop.aborted) return;
        }
      }
    } finally {
      stream.close();
    }
  }

  clock(): ServerTime {
    return this.serverClock.now();
  }

  async close(): Promise<void> {
    this.closing.abort();
  }

  private count(request: Parameters<Traffic["count"]>[1]): void {
    this.server.traffic.count(this.means, request);
  }

  /** Every copy of a request that arrives gets the answer of the first one: that is how the clients of the product judge it. */
  private async send<Answer>(kind: "read" | "write", request: () => Answer): Promise<Answer> {
    const { process, place, network } = this.means;
    const { server } = this;
    let first: { readonly answer: Answer } | undefined;
    const execute = () => {
      if (kind === "read") return request();
      first ??= { answer: request() };
      return first.answer;
    };
    if (kind === "write") this.count({ kind });
    const respond = () => ({ answer: execute(), date: server.date });
    const { answer, date } = await persist(process, PERSISTENCE, (patience) =>
      network.request(process, place, server, respond, patience),
    );
    this.serverClock.hear(date);
    return answer;
  }
}

function titleOf(wanted: readonly Wanted[]): string {
  return wanted.map((each) => (each.kind === "key" ? each.key : each.prefix)).join(" ");
}

/** As of the product's client of etcd. */
const PERSISTENCE: Persistence = {
  firstAttemptMilliseconds: 1_000,
  mayRepeat: () => true,
  failureOf: ({ message }: RequestFailed) => unavailable(message),
};

function unavailable(reason: string): PluginError {
  return new PluginError("datastore-unavailable", `Cannot use the datastore: ${reason}`);
}

function isBelow(event: DatastoreEvent, prefix: string): boolean {
  if (event.kind === "bookmark") return false;
  return (event.kind === "put" ? event.entry.key : event.key).startsWith(prefix);
}
