/** The datastore's reads and commits as etcd transactions. Pure. */
import type { Change, Entry, Snapshot, Wanted, Written } from "../datastore.ts";
import { compareKeys, prefixEnd } from "../key-order.ts";
import { findRefusal, MOST_IN_ONE_REQUEST } from "../preconditions.ts";
import type { StoredEntry, Transaction, TransactionResponse } from "./transport.ts";
import { ABSENT, type Comparison, FROM_KEY_ON, type Operation } from "./transport.ts";
import type { AssumedRead, VerifiedCommit } from "./verified-commit.ts";

/** Some range must be requested: a member responds to a transaction without any from its own, possibly old, state. */
const REVISION_ONLY: Operation = { kind: "range", key: FROM_KEY_ON, keysOnly: true };

/** Reads as of now, or as of a past revision. */
export function readTransaction(wanted: readonly Wanted[], revision?: string): Transaction {
  const ranges = wanted.map((each) => rangeOf(each, revision));
  return { comparisons: [], success: ranges.length > 0 ? ranges : [REVISION_ONLY], failure: [] };
}

export function toSnapshot(wanted: readonly Wanted[], { revision, ranges }: TransactionResponse): Snapshot {
  return { revision, answers: wanted.map((_, index) => (ranges[index] ?? []).map(toEntry)) };
}

/** The etcd range of every key below the prefix. */
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

/** If a comparison fails, the other branch reads the keys, so the reason is known without another request. */
export function commitTransaction(changes: readonly Change[]): Transaction {
  const keys = changes.map(({ key }): Operation => ({ kind: "range", key, keysOnly: true }));
  const writes = changes.flatMap(writeOf);
  return {
    comparisons: changes.flatMap(comparisonOf),
    success: writes.length > 0 ? writes : [REVISION_ONLY],
    failure: keys.length > 0 ? keys : [REVISION_ONLY],
  };
}

export function toWritten(changes: readonly Change[], answer: TransactionResponse): Written | "contradiction" {
  if (answer.succeeded) return { ok: true, revision: answer.revision };
  const revisions = new Map(answer.ranges.flat().map(({ key, revision }) => [key, revision]));
  return findRefusal(changes, (key) => revisions.get(key)) ?? "contradiction";
}

/**
 * The commit, guarded by everything that was assumed; the other branch is the read itself.
 * `undefined` if it exceeds etcd's limits, or if a page of a list was assumed.
 */
export function verifiedTransaction(
  { wanted, answers }: AssumedRead,
  changes: readonly Change[],
): Transaction | undefined {
  const guards = wanted.map((each, index) => guardsOf(each, answers[index] ?? []));
  const comparisons = withoutRepeats([...guards.flatMap((some) => some ?? []), ...changes.flatMap(comparisonOf)]);
  const isTooMuch = comparisons.length > MOST_IN_ONE_REQUEST || wanted.length > MOST_IN_ONE_REQUEST;
  if (isTooMuch || guards.includes(undefined)) return undefined;
  const { success } = commitTransaction(changes);
  return { comparisons, success, failure: readTransaction(wanted).success };
}

export function toVerifiedCommit(wanted: readonly Wanted[], answer: TransactionResponse): VerifiedCommit {
  if (answer.succeeded) return { ok: true, revision: answer.revision };
  return { ok: false, snapshot: toSnapshot(wanted, answer) };
}

/**
 * Comparisons that succeed exactly as long as the read returns these entries. A new key below a prefix was written after
 * every key that existed when the prefix was listed; a deleted key fails its own comparison.
 */
function guardsOf(wanted: Wanted, found: readonly Entry[]): readonly Comparison[] | undefined {
  if (wanted.kind === "key") return [{ kind: "unchanged", key: wanted.key, revision: found[0]?.revision ?? ABSENT }];
  if (wanted.limit !== undefined || wanted.after !== undefined) return undefined;
  const revision = found.reduce((newest, entry) => laterOf(newest, entry.revision), ABSENT);
  return [
    { kind: "none after", ...prefixRange(wanted.prefix), revision },
    ...found.map((entry): Comparison => ({ kind: "unchanged", key: entry.key, revision: entry.revision })),
  ];
}

function laterOf(left: string, right: string): string {
  return BigInt(left) > BigInt(right) ? left : right;
}

/** Two comparisons that contradict each other both stay. */
function withoutRepeats(comparisons: readonly Comparison[]): readonly Comparison[] {
  return [...new Map(comparisons.map((each) => [JSON.stringify(each), each])).values()];
}

function comparisonOf(change: Change): readonly Comparison[] {
  switch (change.kind) {
    case "put":
      return [];
    case "create":
      return [{ kind: "unchanged", key: change.key, revision: ABSENT }];
    case "update":
    case "delete":
    case "expect":
      return [{ kind: "unchanged", key: change.key, revision: change.revision ?? ABSENT }];
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
