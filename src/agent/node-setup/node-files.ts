/**
 * Brings the files of an installation to this node, and removes them again. At every moment each path has its old or its
 * new content; a run that is killed is finished by the next one (record.ts).
 */
import { existsSync, lstatSync, readFileSync, readlinkSync } from "node:fs";
import { dirname } from "node:path";
import { reasonOf } from "../../config/config-files.ts";
import { PluginError } from "../../errors.ts";
import { digestOfBytes, digestOfFile, type FileState, isSameState, stateAt } from "../../linux/file-state.ts";
import {
  makeDirectories,
  type Placed,
  placeFile,
  removeIfEmpty,
  removePlaced,
  unfinishedPath,
} from "../../linux/place-file.ts";
import { quoted } from "../../quote.ts";
import { VERSION } from "../../version.ts";
import type { InstalledEntry } from "./layout.ts";
import {
  announced,
  EMPTY_RECORD,
  goneEntries,
  isOwn,
  isRecorded,
  type NodeRecord,
  type RecordedEntry,
  readRecord,
  writeRecord,
} from "./record.ts";

const RECORD_MODE = 0o600;
const MODE_BITS = 0o7777;

interface Notes {
  /** What a person should know. */
  readonly notes: readonly string[];
}

export interface FilesInstalled extends Notes {
  /** The paths that were written or removed. */
  readonly changed: readonly string[];
}

export class NodeFiles {
  readonly #recordFile: string;
  /** What was there before is kept below it, under its whole path. */
  readonly #replacedDirectory: string;
  readonly #changedDirectory: string;

  constructor(stateDirectory: string) {
    this.#recordFile = `${stateDirectory}/installed.json`;
    this.#replacedDirectory = `${stateDirectory}/replaced`;
    this.#changedDirectory = `${stateDirectory}/changed`;
  }

  install(entries: readonly InstalledEntry[]): FilesInstalled {
    const wanted = entries.map(recordedEntry);
    const { record, notes } = this.#openRecord(() => wanted);
    const before = new Map(record.entries.map((entry) => [entry.path, entry]));
    const found = new Map(wanted.map(({ path }) => [path, stateOrRefusal(path)]));
    const foreign = wanted.filter((entry) => !isOwn(found.get(entry.path) ?? NOTHING, before.get(entry.path)));
    for (const { path } of foreign) keep(path, this.#replacedPath(path));

    const directories = [...new Set(wanted.flatMap(({ path }) => missingDirectories(dirname(path))))];
    this.#saveRecord(announced(record, wanted, directories));
    const written = entries.filter((entry, index) => {
      const state = wanted[index]?.states[0] ?? NOTHING;
      return !isInPlace(entry, state, found.get(entry.path) ?? NOTHING);
    });
    for (const { path, placed } of written) {
      makeDirectories(dirname(path));
      placeFile(path, placed);
    }
    const gone = goneEntries(record, wanted);
    const removed = gone.flatMap((entry) => this.#remove(entry));
    const made = [...new Set([...record.directories, ...directories])];
    this.#saveRecord({ version: VERSION, entries: wanted, directories: made });
    const kept = foreign.map(
      ({ path }) => `${quoted(path)} was there before: it is kept below ${this.#replacedDirectory}`,
    );
    return { notes: [...notes, ...kept, ...removed], changed: [...written, ...gone].map(({ path }) => path) };
  }

  /** In the opposite order. Does nothing if nothing is installed. `known`: what is removed if the record is damaged. */
  uninstall(known: () => readonly InstalledEntry[] = () => []): FilesInstalled {
    const { record, notes } = this.#openRecord(() => known().map(recordedEntry));
    const entries = record.entries.toReversed();
    const removed = entries.flatMap((entry) => this.#remove(entry));
    for (const directory of record.directories.toReversed()) removeIfEmpty(directory);
    removePlaced(this.#recordFile);
    return { notes: [...notes, ...removed], changed: entries.map(({ path }) => path) };
  }

  /** Whether the record has the path. */
  isInstalled(path: string): boolean {
    return this.#openRecord(() => []).record.entries.some((entry) => entry.path === path);
  }

  /** `wanted`: taken for our own if the record cannot be read. */
  #openRecord(wanted: () => readonly RecordedEntry[]): { readonly record: NodeRecord } & Notes {
    if (!existsSync(this.#recordFile)) return { record: EMPTY_RECORD, notes: [] };
    const record = readRecord(textOf(this.#recordFile));
    if (record !== undefined) return { record, notes: [] };
    const note = `${quoted(this.#recordFile)} is damaged: files of earlier releases or other settings may be left`;
    return { record: { ...EMPTY_RECORD, entries: wanted() }, notes: [note] };
  }

  /** Not written if it says so already. */
  #saveRecord(record: NodeRecord): void {
    const text = writeRecord(record);
    if (existsSync(this.#recordFile) && textOf(this.#recordFile) === text) return;
    makeDirectories(dirname(this.#recordFile));
    placeFile(this.#recordFile, { kind: "text", text, mode: RECORD_MODE });
  }

  #replacedPath(path: string): string {
    return `${this.#replacedDirectory}${path}`;
  }

  /** Brings back what was there before. */
  #remove(entry: RecordedEntry): readonly string[] {
    const { path, removal } = entry;
    const found = stateAt(path);
    const isChanged = found.kind !== "nothing" && !isRecorded(entry, found);
    const replaced = this.#replacedPath(path);
    removePlaced(unfinishedPath(path));
    if (found.kind === "other" || (isChanged && removal === "if unchanged")) {
      this.#forgetReplaced(replaced);
      return [`${quoted(path)} is left: it was changed after the installation`];
    }
    const notes = isChanged && removal === "keep a copy" ? [this.#keepChanged(path)] : [];
    if (stateAt(replaced).kind === "nothing") {
      removePlaced(path);
      return notes;
    }
    placeFile(path, sameAs(replaced));
    this.#forgetReplaced(replaced);
    return [...notes, `${quoted(path)} is again what was there before`];
  }

  #keepChanged(path: string): string {
    const copy = `${this.#changedDirectory}${path}`;
    keep(path, copy);
    return `${quoted(path)} was changed after the installation: a copy of it is ${quoted(copy)}`;
  }

  #forgetReplaced(replaced: string): void {
    removePlaced(replaced);
    for (
      let directory = dirname(replaced);
      directory.startsWith(this.#replacedDirectory);
      directory = dirname(directory)
    ) {
      removeIfEmpty(directory);
    }
  }
}

const NOTHING: FileState = { kind: "nothing" };

function recordedEntry({ path, placed, removal }: InstalledEntry): RecordedEntry {
  return { path, states: [stateOf(placed)], removal };
}

function stateOf(placed: Placed): FileState {
  switch (placed.kind) {
    case "link":
      return placed;
    case "text":
      return { kind: "file", digest: digestOfBytes(placed.text) };
    case "copy":
      return { kind: "file", digest: digestOfFile(placed.of) };
  }
}

function stateOrRefusal(path: string): FileState {
  const state = stateAt(path);
  if (state.kind !== "other") return state;
  throw new PluginError("io-failure", `Cannot install ${quoted(path)}: a directory or a device has this name`, {
    details: "move it away",
  });
}

function isInPlace({ path, placed }: InstalledEntry, wanted: FileState, found: FileState): boolean {
  if (!isSameState(found, wanted)) return false;
  return placed.kind === "link" || (lstatSync(path).mode & MODE_BITS) === placed.mode;
}

/** Copies a file or a link, with its mode: the original stays in its place until it is replaced. */
function keep(path: string, copy: string): void {
  makeDirectories(dirname(copy));
  placeFile(copy, sameAs(path));
}

function sameAs(path: string): Placed {
  const status = lstatSync(path);
  if (status.isSymbolicLink()) return { kind: "link", target: readlinkSync(path) };
  return { kind: "copy", of: path, mode: status.mode & MODE_BITS };
}

function missingDirectories(directory: string): readonly string[] {
  if (existsSync(directory)) return [];
  return [...missingDirectories(dirname(directory)), directory];
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new PluginError("io-failure", `Cannot read ${quoted(path)}: ${reasonOf(cause)}`, { cause });
  }
}
