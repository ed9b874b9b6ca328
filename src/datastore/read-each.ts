/**
 * Splits records into readable and unreadable ones.
 *
 * For lists, reports and repairs, in which one malformed record must not hide
 * all others. ADD and DEL use it for pools alone: they fail on any other unreadable record.
 */
import { PluginError } from "../errors.ts";
import type { Entry } from "./datastore.ts";

/** A record that is not JSON, or not of its kind's shape. */
export interface Unreadable {
  readonly key: string;
  readonly revision: string;
  readonly failure: PluginError;
}

export interface ReadEach<Record> {
  readonly readable: readonly Record[];
  readonly unreadable: readonly Unreadable[];
}

/** `read` returns `undefined` for an entry of another kind. */
export function readEach<Record>(
  entries: readonly Entry[],
  read: (entry: Entry) => Record | undefined,
): ReadEach<Record> {
  const readable: Record[] = [];
  const unreadable: Unreadable[] = [];
  for (const entry of entries) {
    try {
      const record = read(entry);
      if (record !== undefined) readable.push(record);
    } catch (failure) {
      if (!(failure instanceof PluginError) || failure.kind !== "record-malformed") throw failure;
      unreadable.push({ key: entry.key, revision: entry.revision, failure });
    }
  }
  return { readable, unreadable };
}
