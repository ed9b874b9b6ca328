/**
 * The record of what an installation has written on this node, in the order of writing. It is written before the first
 * change with everything that is about to be, and at the end with what is: however the installation ends in between,
 * the next one, or an uninstallation, knows its own files. Pure.
 */
import { isJsonObject } from "../../cni/json.ts";
import { type FileState, isSameState } from "../../linux/file-state.ts";
import { parseJson } from "../../parse-json.ts";
import type { Removal } from "./layout.ts";

export interface RecordedEntry {
  readonly path: string;
  /** What may be found there: several while an installation runs. */
  readonly states: readonly FileState[];
  readonly removal: Removal;
}

export interface NodeRecord {
  readonly version: string;
  readonly entries: readonly RecordedEntry[];
  /** Directories that were made, parents first. */
  readonly directories: readonly string[];
}

export const EMPTY_RECORD: NodeRecord = { version: "", entries: [], directories: [] };

export function writeRecord(record: NodeRecord): string {
  return `${JSON.stringify(record, undefined, 2)}\n`;
}

/** `undefined` if it is not a record. */
export function readRecord(text: string): NodeRecord | undefined {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    return undefined;
  }
  if (!isJsonObject(value) || !Array.isArray(value["entries"]) || !Array.isArray(value["directories"]))
    return undefined;
  const isEntry = (entry: unknown) =>
    isJsonObject(entry) && typeof entry["path"] === "string" && Array.isArray(entry["states"]);
  return value["entries"].every(isEntry) ? (value as unknown as NodeRecord) : undefined;
}

/** Both: what the record has, and what is about to be written. */
export function announced(
  record: NodeRecord,
  wanted: readonly RecordedEntry[],
  directories: readonly string[],
): NodeRecord {
  const ofPath = new Map(wanted.map((entry) => [entry.path, entry]));
  const merged = record.entries.map((entry) => {
    const next = ofPath.get(entry.path);
    return next === undefined ? entry : { ...next, states: distinct([...entry.states, ...next.states]) };
  });
  const known = new Set(record.entries.map(({ path }) => path));
  return {
    ...record,
    entries: [...merged, ...wanted.filter(({ path }) => !known.has(path))],
    directories: [...new Set([...record.directories, ...directories])],
  };
}

/** Entries of the record that are not wanted any more; the last written first. */
export function goneEntries(record: NodeRecord, wanted: readonly RecordedEntry[]): readonly RecordedEntry[] {
  const paths = new Set(wanted.map(({ path }) => path));
  return record.entries.filter(({ path }) => !paths.has(path)).toReversed();
}

export function isRecorded(entry: RecordedEntry | undefined, found: FileState): boolean {
  return entry?.states.some((state) => isSameState(state, found)) ?? false;
}

/** Whether an installation may replace what it finds without keeping it. `before`: what the record says about the path. */
export function isOwn(found: FileState, before: RecordedEntry | undefined): boolean {
  if (found.kind === "nothing" || isRecorded(before, found)) return true;
  return before !== undefined && before.removal !== "if unchanged";
}

function distinct(states: readonly FileState[]): readonly FileState[] {
  return states.filter((state, index) => states.findIndex((other) => isSameState(state, other)) === index);
}
