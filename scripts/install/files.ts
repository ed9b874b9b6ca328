/** Reads and writes below a root folder (`DESTDIR`). A path is never half written: what is new is renamed into place. */
import {
  chmodSync,
  copyFileSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { Entry } from "./layout.ts";
import type { Found } from "./record.ts";

const DIRECTORY_MODE = 0o755;
const EXECUTABLE_MODE = 0o755;
const TEXT_MODE = 0o644;
/** Set user ID, set group ID. */
const SET_ID_BITS = 0o6000;

export function digestOfBytes(bytes: string | Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
}

export function stateAt(root: string, path: string): Found {
  const status = lstatSync(join(root, path), { throwIfNoEntry: false });
  if (status === undefined) return { kind: "nothing" };
  if (status.isSymbolicLink()) return { kind: "link", target: readlinkSync(join(root, path)) };
  if (status.isFile()) return { kind: "file", digest: digestOfBytes(readFileSync(join(root, path))) };
  return { kind: "other" };
}

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

/** A new file takes the place of the old one, so that neither its mode nor its capabilities stay. */
export function writeEntry(root: string, entry: Entry, executable: string): void {
  const path = join(root, entry.path);
  const unfinished = `${path}.new`;
  rmSync(unfinished, { force: true });
  if (entry.kind === "link") symlinkSync(entry.target, unfinished);
  else if (entry.kind === "executable")
    writeFile(unfinished, EXECUTABLE_MODE, () => copyFileSync(executable, unfinished));
  else writeFile(unfinished, TEXT_MODE, () => writeFileSync(unfinished, entry.content));
  renameSync(unfinished, path);
}

function writeFile(path: string, mode: number, write: () => void): void {
  try {
    write();
    chmodSync(path, mode);
  } catch (failure) {
    rmSync(path, { force: true });
    throw failure;
  }
}
