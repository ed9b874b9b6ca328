/** Reads and writes below a root folder (`DESTDIR`). A path is never half written: what is new is renamed into place. */
import { chmodSync, lstatSync, mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Placed, placeFile } from "../../src/linux/place-file.ts";
import type { Entry } from "./layout.ts";

const DIRECTORY_MODE = 0o755;
const EXECUTABLE_MODE = 0o755;
const TEXT_MODE = 0o644;
/** Set user ID, set group ID. */
const SET_ID_BITS = 0o6000;

export function hasSetIdBit(file: string): boolean {
  const status = lstatSync(file, { throwIfNoEntry: false });
  return status?.isFile() === true && (status.mode & SET_ID_BITS) !== 0;
}

/** Makes the folders that do not exist, whatever the umask is; returns them. */
export function makeDirectories(root: string, directories: readonly string[]): readonly string[] {
  return directories.filter((directory) => {
    const path = join(root, directory);
    if (statSync(path, { throwIfNoEntry: false }) !== undefined) return false;
    mkdirSync(path, { recursive: true });
    chmodSync(path, DIRECTORY_MODE);
    return true;
  });
}

export function writeEntry(root: string, entry: Entry, executable: string): void {
  placeFile(join(root, entry.path), placedAs(entry, executable));
}

function placedAs(entry: Entry, executable: string): Placed {
  if (entry.kind === "link") return entry;
  if (entry.kind === "executable") return { kind: "copy", of: executable, mode: EXECUTABLE_MODE };
  return { kind: "text", text: entry.content, mode: TEXT_MODE };
}
