/**
 * Puts files and links in their places so that a reader finds the old one or the new one, never half of it or none,
 * also after a power loss: a temporary file, fsync, rename, fsync of the directory. For rare work: imports node:fs.
 */
import {
  closeSync,
  copyFileSync,
  fchmodSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { reasonOf } from "../config/config-files.ts";
import { effect } from "../effect.ts";
import { PluginError } from "../errors.ts";
import { quoted } from "../quote.ts";

export type Placed =
  | { readonly kind: "text"; readonly text: string | Uint8Array; readonly mode: number }
  | { readonly kind: "copy"; readonly of: string; readonly mode: number }
  | { readonly kind: "link"; readonly target: string };

const DIRECTORY_MODE = 0o755;
const OWNER_ONLY = 0o600;

/** Programs that read all files of a directory, such as container runtimes, go by the end of their names. */
export function unfinishedPath(path: string): string {
  return `${path}.new`;
}

/** A new file takes the place of the old one, so that neither its mode nor its capabilities stay. */
export function placeFile(path: string, placed: Placed): void {
  const unfinished = unfinishedPath(path);
  try {
    rmSync(unfinished, { force: true });
    effect(`write "${unfinished}"`, () => writeUnfinished(unfinished, placed));
    effect(`place "${path}"`, () => renameSync(unfinished, path));
    flushDirectory(dirname(path));
  } catch (cause) {
    removeQuietly(unfinished);
    throw new PluginError("io-failure", `Cannot write ${quoted(path)}: ${reasonOf(cause)}`, {
      details: "make its directory writable, and its filesystem have space",
      cause,
    });
  }
}

/** Returns whether it existed. A directory is not removed. */
export function removePlaced(path: string): boolean {
  try {
    if (!isThere(path)) return false;
    effect(`remove "${path}"`, () => rmSync(path));
    flushDirectory(dirname(path));
    return true;
  } catch (cause) {
    throw new PluginError("io-failure", `Cannot remove ${quoted(path)}: ${reasonOf(cause)}`, { cause });
  }
}

/** Makes the directory and those above it that do not exist, whatever the umask is; returns them, parents first. */
export function makeDirectories(directory: string): readonly string[] {
  if (statSync(directory, { throwIfNoEntry: false }) !== undefined) return [];
  const above = dirname(directory) === directory ? [] : makeDirectories(dirname(directory));
  try {
    effect(`make "${directory}"`, () => mkdirSync(directory));
    const file = openSync(directory, "r");
    fchmodSync(file, DIRECTORY_MODE);
    closeSync(file);
  } catch (cause) {
    throw new PluginError("io-failure", `Cannot create the directory ${quoted(directory)}: ${reasonOf(cause)}`, {
      details: "make the directory above it writable",
      cause,
    });
  }
  return [...above, directory];
}

const NOT_REMOVED: ReadonlySet<unknown> = new Set(["ENOTEMPTY", "ENOENT", "EEXIST", "EBUSY", "ENOTDIR"]);

export function removeIfEmpty(directory: string): void {
  try {
    rmdirSync(directory);
  } catch (failure) {
    const code = failure instanceof Error && "code" in failure ? failure.code : undefined;
    if (!NOT_REMOVED.has(code)) throw failure;
  }
}

function writeUnfinished(path: string, placed: Placed): void {
  if (placed.kind === "link") {
    symlinkSync(placed.target, path);
    return;
  }
  if (placed.kind === "copy") copyFileSync(placed.of, path);
  // Nobody else may read a secret for a moment.
  else writeFileSync(path, placed.text, { mode: OWNER_ONLY });
  const file = openSync(path, "r");
  try {
    fchmodSync(file, placed.mode);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function flushDirectory(path: string): void {
  const directory = openSync(path, "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

function removeQuietly(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // The failure to write it is what is reported.
  }
}
