/**
 * etcd in memory, behind a faulty network. Processes use it through the product's own client: its retries, its search for
 * the outcome of a commit whose answer was lost, its watches that resume.
 */
import type { Datastore } from "../../src/datastore/datastore.ts";
import { cachingDatastore } from "../../src/datastore/etcd/caching-datastore.ts";
import { openEtcdThrough } from "../../src/datastore/etcd/etcd.ts";
import { type EtcdFailure, failureOfConnection } from "../../src/datastore/etcd/failure.ts";
import type { WatchRequest, WatchResponse } from "../../src/datastore/etcd/transport.ts";
import { MemoryTable } from "../../src/datastore/memory/table.ts";
import { connectionError } from "../faults/connection-error.ts";
import { FaultyServer } from "../faults/faulty-server.ts";
import { type FaultyNetwork, RequestFailed } from "../faults/network.ts";
import { timersOf } from "../faults/process-timers.ts";
import type { FaultyStream } from "../faults/stream.ts";
import type { SimulatedProcess } from "../schedule/process.ts";
import { EtcdTransport } from "./etcd-transport.ts";
import { EtcdVersions, isWithin } from "./etcd-versions.ts";

interface Watcher {
  readonly request: WatchRequest;
  readonly stream: FaultyStream<WatchResponse>;
}

/** How often etcd tells a watch without events how far it is. */
const PROGRESS_MILLISECONDS = 600_000;

export class SimulatedEtcd extends FaultyServer {
  readonly table = new MemoryTable();
  readonly versions = new EtcdVersions(this.table);
  private readonly watchers = new Set<Watcher>();
  private seen = 1n;

  constructor(network: FaultyNetwork) {
    super(network);
    this.table.onCommit(() => this.announce());
    this.reportProgress();
  }

  /** `cachesReads`: as of a process that stays, such as the node agent. */
  connect(process: SimulatedProcess, place: string, options: { readonly cachesReads?: boolean } = {}): Datastore {
    const transport = new EtcdTransport(this, { process, place, network: this.network });
    const { store, failures } = openEtcdThrough(transport, {
      timers: timersOf(process),
      elapsed: process.elapsed,
    });
    return options.cachesReads ? cachingDatastore(store, failures) : store;
  }

  compact(): void {
    this.table.forgetHistory();
    this.versions.compact();
  }

  /** Executed at the server. Like etcd, serves a watch from the revision of the compaction on, without its deletions. */
  startWatch(request: WatchRequest, stream: FaultyStream<WatchResponse>): void {
    const start = BigInt(request.startRevision);
    stream.send(this.response({ created: true }));
    if (start < this.table.forgotten) {
      const compactRevision = String(this.table.forgotten);
      stream.send(this.response({ canceled: true, compactRevision }));
      return;
    }
    const isReached = start <= BigInt(this.table.revision);
    const changes = isReached ? this.versions.since(start).filter((change) => concerns(change, request)) : [];
    if (changes.length > 0) stream.send(this.response({ changes }));
    const watcher = { request, stream };
    this.watchers.add(watcher);
    stream.onClose(() => this.watchers.delete(watcher));
  }

  protected brokenWatch(): EtcdFailure {
    return failureOfConnection(connectionError(new RequestFailed("reset", "unknown")));
  }

  private announce(): void {
    const events = this.table.eventsAfter(this.seen);
    this.seen = BigInt(this.table.revision);
    const all = events.flatMap((event) => this.versions.record(event) ?? []);
    for (const { request, stream } of this.watchers) {
      const changes = all.filter((change) => concerns(change, request));
      if (changes.length > 0) stream.send(this.response({ changes }));
    }
  }

  private reportProgress(): void {
    for (const { stream } of this.watchers) stream.send(this.response({}));
    this.network.scheduler.after(PROGRESS_MILLISECONDS, () => this.reportProgress());
  }

  private response(more: Partial<WatchResponse>): WatchResponse {
    const { revision } = this.table;
    return { revision, created: false, canceled: false, compactRevision: "0", cancelReason: "", changes: [], ...more };
  }
}

type Change = WatchResponse["changes"][number];

function concerns(change: Change, { key, end, startRevision }: WatchRequest): boolean {
  const [changed, revision] =
    change.kind === "put" ? [change.entry.key, change.entry.revision] : [change.key, change.revision];
  return isWithin(changed, key, end) && BigInt(revision) >= BigInt(startRevision);
}
