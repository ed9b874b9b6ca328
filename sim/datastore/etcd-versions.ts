/** The records of etcd as they are and as they were: every version since the last compaction. */
import type { Change, DatastoreEvent } from "../../src/datastore/datastore.ts";
import { failureOfResponse } from "../../src/datastore/etcd/failure.ts";
import {
  type Comparison,
  FROM_KEY_ON,
  type Operation,
  type StoredEntry,
  type Transaction,
  type TransactionResponse,
  type WatchedChange,
} from "../../src/datastore/etcd/transport.ts";
import { compareKeys } from "../../src/datastore/key-order.ts";
import type { MemoryTable } from "../../src/datastore/memory/table.ts";

interface Version {
  readonly revision: bigint;
  readonly entry: StoredEntry | undefined;
}

/** gRPC status of a revision that etcd does not have. */
const OUT_OF_RANGE = 11;

export class EtcdVersions {
  private readonly versions = new Map<string, Version[]>();

  constructor(private readonly table: MemoryTable) {}

  /** Executed at the server, at one moment. */
  transact({ comparisons, success, failure }: Transaction): TransactionResponse {
    const succeeded = comparisons.every((comparison) => this.holds(comparison));
    const operations = succeeded ? success : failure;
    const changes = operations.flatMap((operation): Change[] => {
      if (operation.kind === "put") return [operation];
      if (operation.kind === "range") return [];
      const [entry] = this.table.answer({ kind: "key", key: operation.key });
      return entry ? [{ kind: "delete", key: entry.key, revision: entry.revision }] : [];
    });
    if (changes.length > 0) this.table.commit(changes);
    const ranges = operations.flatMap((operation) => (operation.kind === "range" ? [this.range(operation)] : []));
    return { revision: this.table.revision, succeeded, ranges };
  }

  /** What a commit changed, in the order of its events; each must be told once. */
  record(event: DatastoreEvent): WatchedChange | undefined {
    if (event.kind === "bookmark") return undefined;
    const key = event.kind === "put" ? event.entry.key : event.key;
    const versions = this.versions.get(key) ?? [];
    this.versions.set(key, versions);
    const created = versions.at(-1)?.entry?.createRevision;
    if (event.kind === "delete") {
      versions.push({ revision: BigInt(event.revision), entry: undefined });
      return event;
    }
    const entry = { ...event.entry, createRevision: created ?? event.entry.revision };
    versions.push({ revision: BigInt(entry.revision), entry });
    return { kind: "put", entry };
  }

  /** All changes from this revision on that were not compacted. */
  since(revision: bigint): readonly WatchedChange[] {
    const { forgotten } = this.table;
    return this.table
      .eventsAfter(revision > forgotten ? revision - 1n : forgotten)
      .flatMap((event): WatchedChange[] => {
        if (event.kind !== "put") return event.kind === "delete" ? [event] : [];
        const written = BigInt(event.entry.revision);
        const entry = this.versions.get(event.entry.key)?.findLast((version) => version.revision === written)?.entry;
        return entry ? [{ kind: "put", entry }] : [];
      });
  }

  compact(): void {
    for (const [key, versions] of this.versions) {
      const last = versions.at(-1);
      if (last?.entry) this.versions.set(key, [last]);
      else this.versions.delete(key);
    }
  }

  private holds(comparison: Comparison): boolean {
    if (comparison.kind === "unchanged") {
      const [entry] = this.table.answer({ kind: "key", key: comparison.key });
      return (entry?.revision ?? "0") === comparison.revision;
    }
    const { key, end, revision } = comparison;
    const newest = BigInt(revision);
    return this.table.range(key, endOf(end)).every((entry) => BigInt(entry.revision) <= newest);
  }

  private range(operation: Extract<Operation, { readonly kind: "range" }>): readonly StoredEntry[] {
    const { key, end, limit = Number.POSITIVE_INFINITY, revision, keysOnly } = operation;
    const found = revision === undefined ? this.present(key, end, limit) : this.past(key, end, BigInt(revision));
    const entries = found.slice(0, limit);
    return keysOnly ? entries.map((entry) => ({ ...entry, value: "" })) : entries;
  }

  private present(key: string, end: string | undefined, limit: number): readonly StoredEntry[] {
    const entries =
      end === undefined ? this.table.answer({ kind: "key", key }) : this.table.range(key, endOf(end), limit);
    return entries.flatMap((entry) => this.versions.get(entry.key)?.at(-1)?.entry ?? []);
  }

  private past(key: string, end: string | undefined, revision: bigint): readonly StoredEntry[] {
    if (revision < this.table.forgotten) {
      throw failureOfResponse(OUT_OF_RANGE, "etcdserver: mvcc: required revision has been compacted");
    }
    if (revision > BigInt(this.table.revision)) {
      throw failureOfResponse(OUT_OF_RANGE, "etcdserver: mvcc: required revision is a future revision");
    }
    const keys = end === undefined ? [key] : [...this.versions.keys()].filter((each) => isWithin(each, key, end));
    return keys
      .sort(compareKeys)
      .flatMap((each) => this.versions.get(each)?.findLast((version) => version.revision <= revision)?.entry ?? []);
  }
}

export function isWithin(key: string, from: string, end: string | undefined): boolean {
  if (end === undefined) return key === from;
  return compareKeys(key, from) >= 0 && (end === FROM_KEY_ON || compareKeys(key, end) < 0);
}

function endOf(end: string): string | undefined {
  return end === FROM_KEY_ON ? undefined : end;
}
