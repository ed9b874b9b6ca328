/**
 * A list of changes at each level of atomicity: as one transaction, in which a
 * rewrite determines the final value of its key; or one after another, each
 * based on what the list itself has written.
 */
import { PluginError } from "../errors.ts";
import type { Change, OrderedChange, Rewrite, Written } from "./datastore.ts";
import { requireCommittable } from "./preconditions.ts";

/** The changes with every key named once. Throws for a commit that no datastore accepts. */
export function asOneTransaction(changes: readonly OrderedChange[]): readonly Change[] {
  requireCommittable(changes);
  const merged = new Map<string, Change>();
  for (const change of changes) {
    const before = merged.get(change.key);
    if (change.kind !== "rewrite") merged.set(change.key, change);
    else if (before) merged.set(change.key, overwritten(before, change));
  }
  return [...merged.values()];
}

function overwritten(before: Change, { key, value }: Rewrite): Change {
  if (value !== undefined) return "value" in before ? { ...before, value } : before;
  if (before.kind === "create") return { kind: "expect", key, revision: undefined };
  if (before.kind === "update") return { kind: "delete", key, revision: before.revision };
  throw new PluginError("internal", `Cannot commit "${key}": an unconditional put cannot be deleted again`);
}

/** `commit` gets one change, or none; then it returns the current revision. */
export async function commitInOrder(
  changes: readonly OrderedChange[],
  commit: (change: readonly Change[]) => Promise<Written>,
): Promise<Written> {
  requireCommittable(changes);
  const own = new Map<string, string>();
  let written: Written | undefined;
  for (const change of changes) {
    written = await commit([change.kind === "rewrite" ? onTopOf(own.get(change.key) ?? "", change) : change]);
    if (!written.ok) return own.size === 0 ? written : { ...written, partly: true };
    if (change.kind !== "expect") own.set(change.key, written.revision);
  }
  return written ?? commit([]);
}

function onTopOf(revision: string, { key, value }: Rewrite): Change {
  return value === undefined ? { kind: "delete", key, revision } : { kind: "update", key, value, revision };
}
