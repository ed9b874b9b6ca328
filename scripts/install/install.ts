/** Installs and uninstalls. Whatever is refused is refused before anything is changed. */
import { existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Identity } from "../../src/identity.ts";
import { digestOfBytes, digestOfFile, isSameState, stateAt } from "../../src/linux/file-state.ts";
import { removeIfEmpty } from "../../src/linux/place-file.ts";
import { hasSetIdBit, makeDirectories, writeEntry } from "./files.ts";
import { type Entry, layoutOf, type Places } from "./layout.ts";
import {
  backupPath,
  directoriesOf,
  foreignPaths,
  type InstallationRecord,
  type Installed,
  recordPath,
  wantedState,
} from "./record.ts";

/** An installation that is refused: the message says why and what to do. */
export class Refused extends Error {
  override readonly name = "Refused";
}

export interface Installation {
  readonly names: Identity;
  readonly version: string;
  /** The built executable. */
  readonly executable: string;
  /** `DESTDIR`: everything is written below it; "/" is the host itself. */
  readonly root: string;
  readonly places: Places;
  /** What to do with a file of somebody else, such as another portmap. */
  readonly existing: "refuse" | "backup";
}

/** Where something is installed. */
type Place = Pick<Installation, "names" | "root" | "places">;

/** Installs, also over an earlier installation; returns what a person should know. */
export function install(installation: Installation): readonly string[] {
  const { names, version, executable, root, places } = installation;
  refuseSetId(executable);
  const previous = readRecord(installation);
  const all = layoutOf(places);
  const layout = all.filter((entry) => !isAdministrators(entry, root, previous));
  const wanted = layout.map((entry) => ({ path: entry.path, state: wantedState(entry, digestIn(executable)) }));
  const found = new Map(wanted.map(({ path }) => [path, stateAt(join(root, path))]));
  const foreign = foreignPaths(wanted, found, previous);
  refuseForeign(foreign, installation);

  const notes = foreign.map((path) => backUp(path, installation));
  const record = recordPath(names, places.prefix);
  const made = makeDirectories(root, directoriesOf([...wanted.map(({ path }) => path), record]));
  for (const entry of layout) writeEntry(root, entry, executable);
  const gone = previous?.entries.filter(({ path }) => !has(all, path)) ?? [];
  notes.push(...gone.flatMap((entry) => remove(entry, installation)));
  const kept = previous?.entries.filter(({ path }) => has(all, path) && !has(layout, path)) ?? [];
  const directories = [...new Set([...(previous?.directories ?? []), ...made])].sort();
  writeRecord(installation, { version, entries: [...wanted, ...kept], directories });
  return notes;
}

function has(entries: readonly Entry[], path: string): boolean {
  return entries.some((entry) => entry.path === path);
}

/** Removes what the record names, as far as it is still what was installed. */
export function uninstall(installation: Place): readonly string[] {
  const { names, root, places } = installation;
  const record = requireRecord(installation);
  const file = join(root, recordPath(names, places.prefix));
  const notes = record.entries.flatMap((entry) => remove(entry, installation));
  rmSync(file);
  for (const directory of record.directories.toReversed()) removeIfEmpty(join(root, directory));
  return notes;
}

export function requireRecord(installation: Place): InstallationRecord {
  const { names, root, places } = installation;
  const record = readRecord(installation);
  if (record !== undefined) return record;
  const file = join(root, recordPath(names, places.prefix));
  throw new Refused(`Cannot uninstall: there is no record "${file}"; give the DESTDIR and PREFIX of the installation`);
}

function refuseSetId(executable: string): void {
  if (!existsSync(executable)) throw new Refused(`Cannot install: "${executable}" does not exist; run "make build"`);
  if (!hasSetIdBit(executable)) return;
  throw new Refused(
    `Cannot install: "${executable}" has a setuid or setgid bit, with which any user could act as another; ` +
      `remove it with "chmod ug-s ${executable}"`,
  );
}

/** A configuration file that was there before, or was changed after its installation. */
function isAdministrators(entry: Entry, root: string, previous: InstallationRecord | undefined): boolean {
  if (entry.kind !== "configuration") return false;
  const there = stateAt(join(root, entry.path));
  const recorded = previous?.entries.find(({ path }) => path === entry.path);
  return there.kind !== "nothing" && (recorded === undefined || !isSameState(there, recorded.state));
}

function digestIn(executable: string): (entry: Exclude<Entry, { kind: "link" }>) => string {
  return (entry) => (entry.kind === "executable" ? digestOfFile(executable) : digestOfBytes(entry.content));
}

function refuseForeign(foreign: readonly string[], { names, root, existing }: Installation): void {
  if (foreign.length === 0) return;
  if (existing === "refuse") {
    throw new Refused(
      `Cannot install: not written by an earlier "make install": ${foreign.join(", ")}; ` +
        `move them away, choose another CNI_BIN_DIR, or keep them as *${backupPath("", names)} with EXISTING=backup`,
    );
  }
  const taken = foreign
    .map((path) => backupPath(path, names))
    .filter((path) => stateAt(join(root, path)).kind !== "nothing");
  if (taken.length > 0) throw new Refused(`Cannot install: move away the earlier backups ${taken.join(", ")}`);
}

function backUp(path: string, { names, root }: Installation): string {
  const backup = backupPath(path, names);
  renameSync(join(root, path), join(root, backup));
  return `${path} was there before: it is kept as ${backup} until "make uninstall"`;
}

function remove({ path, state }: Installed, { names, root }: Pick<Installation, "names" | "root">): readonly string[] {
  const there = stateAt(join(root, path));
  if (there.kind !== "nothing" && !isSameState(there, state))
    return [`${path} is left: it was changed after the installation`];
  rmSync(join(root, path), { force: true });
  const backup = backupPath(path, names);
  if (stateAt(join(root, backup)).kind === "nothing") return [];
  renameSync(join(root, backup), join(root, path));
  return [`${path} is again the file that was there before`];
}

function readRecord({ names, root, places }: Place): InstallationRecord | undefined {
  const file = join(root, recordPath(names, places.prefix));
  if (!existsSync(file)) return undefined;
  try {
    return JSON.parse(readFileSync(file, "utf8")) as InstallationRecord;
  } catch (failure) {
    if (!(failure instanceof SyntaxError)) throw failure;
    throw new Refused(
      `Cannot read the record of the installation "${file}": it is not JSON; delete it and install again`,
    );
  }
}

function writeRecord({ names, root, places }: Installation, record: InstallationRecord): void {
  const path = recordPath(names, places.prefix);
  makeDirectories(root, [dirname(path)]);
  writeEntry(root, { kind: "text", path, content: `${JSON.stringify(record, undefined, 2)}\n` }, "");
}
