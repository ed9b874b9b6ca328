/**
 * Checks the preconditions of a commit. Every datastore uses the same check, so
 * each returns the same refusal for the same race.
 */

import { PluginError } from "../errors.ts";
import { quoted } from "../quote.ts";
import type { Change, OrderedChange, Written } from "./datastore.ts";

type Refusal = Extract<Written, { ok: false }>;

/** Returns the first change whose precondition fails, given the current revision of each key (`undefined`: no such key). */
export function findRefusal(
  changes: readonly Change[],
  revisionOf: (key: string) => string | undefined,
): Refusal | undefined {
  for (const change of changes) {
    const reason = refusalOf(change, revisionOf(change.key));
    if (reason) return { ok: false, reason, key: change.key };
  }
  return undefined;
}

function refusalOf(change: Change, current: string | undefined): Refusal["reason"] | undefined {
  switch (change.kind) {
    case "put":
      return undefined;
    case "create":
      return current === undefined ? undefined : "exists";
    case "expect":
      if (change.revision === undefined) return current === undefined ? undefined : "exists";
      return compareRevisions(change.revision, current);
    case "update":
    case "delete":
      return compareRevisions(change.revision, current);
  }
}

function compareRevisions(expected: string, current: string | undefined): "stale" | "missing" | undefined {
  if (current === undefined) return "missing";
  return current === expected ? undefined : "stale";
}

/** etcd's default limit of operations in one transaction (`--max-txn-ops`). */
export const MOST_IN_ONE_REQUEST = 128;

/** Throws for a commit that no datastore accepts: too many changes, a key named twice, an empty key, text that is not Unicode. */
export function requireCommittable(changes: readonly OrderedChange[]): void {
  if (changes.length > MOST_IN_ONE_REQUEST) {
    throw new PluginError(
      "internal",
      `Cannot commit ${changes.length} changes: at most ${MOST_IN_ONE_REQUEST} at once`,
    );
  }
  const last = new Map<string, OrderedChange>();
  for (const change of changes) {
    const { key } = change;
    requireOrder(change, last.get(key));
    if (key === "") throw new PluginError("internal", "Cannot commit: a key is empty");
    const value = "value" in change ? (change.value ?? "") : "";
    if (!key.isWellFormed() || !value.isWellFormed()) {
      throw new PluginError("internal", `Cannot commit ${quoted(key)}: the text is not well-formed Unicode`);
    }
    last.set(key, change);
  }
}

/** `before`: the change of the same key that precedes it. */
function requireOrder({ kind, key }: OrderedChange, before: OrderedChange | undefined): void {
  const isWritten = before !== undefined && "value" in before && before.value !== undefined;
  if (kind === "rewrite" && !isWritten) {
    throw new PluginError("internal", `Cannot commit "${key}": nothing before its rewrite writes it`);
  }
  if (kind !== "rewrite" && before) throw new PluginError("internal", `Cannot commit "${key}": the key is named twice`);
}
