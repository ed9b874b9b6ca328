/** The datastore's reads and commits as etcd transactions. Pure. */
import type { Change, Entry, Snapshot, Wanted, Written } from "../datastore.ts";
import { compareKeys, prefixEnd } from "../key-order.ts";
import { findRefusal } from "../preconditions.ts";
import type { StoredEntry, Transaction, TransactionAnswer } from "./transport.ts";
import { ABSENT, type Comparison, FROM_KEY_ON, type Operation } from "./transport.ts";

/** Some range must be asked for: a transaction without any is answered from a member's own, maybe old, state. */
const REVISION_ONLY: Operation = { kind: "range", key: FROM_KEY_ON, keysOnly: true };

/** Reads as of now, or as of a past revision. */
export function readTransaction(wanted: readonly Wanted[], revision?: string): Transaction {
  const ranges = wanted.map((each) => rangeOf(each, revision));
  return { comparisons: [], success: ranges.length > 0 ? ranges : [REVISION_ONLY], failure: [] };
}

export function toSnapshot(wanted: readonly Wanted[], { revision, ranges }: TransactionAnswer): Snapshot {
  return { revision, answers: wanted.map((_, index) => (ranges[index] ?? []).map(toEntry)) };
}

/** The range of etcd that holds every key below the prefix. */
export function prefixRange(prefix: string): { readonly key: string; readonly end: string } {
  return { key: prefix === "" ? FROM_KEY_ON : prefix, end: prefixEnd(prefix) ?? FROM_KEY_ON };
}

function rangeOf(wanted: Wanted, revision: string | undefined): Operation {
  const asOf = revision === undefined ? {} : { revision };
  if (wanted.kind === "key") return { kind: "range", key: wanted.key, ...asOf };
  const { prefix, limit, after } = wanted;
  const { key, end } = prefixRange(prefix);
  const isBehind = after !== undefined && compareKeys(after, prefix) >= 0;
  return {
    kind: "range",
    key: isBehind ? `${after}\u{0000}` : key,
    end,
    ...(limit === undefined ? {} : { limit }),
    ...asOf,
  };
}

function toEntry({ key, value, revision }: StoredEntry): Entry {
  return { key, value, revision };
}

/** When a comparison fails, the other branch reads the keys: the reason is known without asking again. */
export function commitTransaction(changes: readonly Change[]): Transaction {
  const keys = changes.map(({ key }): Operation => ({ kind: "range", key, keysOnly: true }));
  const writes = changes.flatMap(writeOf);
  return {
    comparisons: changes.flatMap(comparisonOf),
    success: writes.length > 0 ? writes : [REVISION_ONLY],
    failure: keys.length > 0 ? keys : [REVISION_ONLY],
  };
}

export function toWritten(changes: readonly Change[], answer: TransactionAnswer): Written | "contradiction" {
  if (answer.succeeded) return { ok: true, revision: answer.revision };
  const revisions = new Map(answer.ranges.flat().map(({ key, revision }) => [key, revision]));
  return findRefusal(changes, (key) => revisions.get(key)) ?? "contradiction";
}

function comparisonOf(change: Change): readonly Comparison[] {
  switch (change.kind) {
    case "put":
      return [];
    case "create":
      return [{ key: change.key, revision: ABSENT }];
    case "update":
    case "delete":
    case "expect":
      return [{ key: change.key, revision: change.revision ?? ABSENT }];
  }
}

function writeOf(change: Change): readonly Operation[] {
  switch (change.kind) {
    case "expect":
      return [];
    case "delete":
      return [{ kind: "delete", key: change.key }];
    case "create":
    case "update":
    case "put":
      return [{ kind: "put", key: change.key, value: change.value }];
  }
}
