/**
 * Reads, writes, creates and removes small files with direct system calls.
 *
 * For an ADD, loading `node:fs` costs more than all the work on the files
 * (docs/decisions/0006-what-imports-cost.md). Rare operations (create folders, list
 * them) load it when they need it.
 */
import { enlarged } from "../bytes.ts";
import { effect } from "../effect.ts";
import { PluginError } from "../errors.ts";
import { statusAt } from "../file-status.ts";
import { quoted } from "../quote.ts";
import { describeErrno, errnoOf } from "./errno.ts";
import * as libc from "./libc.ts";

const READ_ONLY = 0;
const WRITE_ONLY = 0o1;
const CREATE = 0o100;
const EXCLUSIVE = 0o200;
const TRUNCATE = 0o1000;
const CLOSE_ON_EXEC = 0o2000000;
/** Only for the owner: others need not know which container has which address. */
const MODE = 0o600;

/** Large enough for every small file: it is read with one system call, into a buffer that is reused. */
const SMALL = 4096;

let smallBuffer: Uint8Array | undefined;
let decoder: TextDecoder | undefined;

/** A descriptor to read the file, or to refer to what it represents; `undefined` if it does not exist. */
export function openToRead(path: string): number | undefined {
  return open(path, READ_ONLY);
}

/** A descriptor to lock the file, which is created if needed; `undefined` if its folder does not exist. */
export function openLockFile(path: string): number | undefined {
  return open(path, READ_ONLY | CREATE);
}

export function closeFile(file: number): void {
  libc.close(file);
}

/** The whole text, or `undefined` if there is no such file. */
export function readText(path: string): string | undefined {
  const file = open(path, READ_ONLY);
  if (file === undefined) return undefined;
  try {
    decoder ??= new TextDecoder();
    return decoder.decode(readAll(file, path));
  } finally {
    closeFile(file);
  }
}

/** Replaces the content, or creates the file. Not atomic: a process that is killed in between leaves it empty. */
export function writeText(path: string, text: string): void {
  const file = open(path, WRITE_ONLY | CREATE | TRUNCATE);
  if (file === undefined) throw refused("write", path, errnoOf("ENOENT"));
  effect(`write "${path}"`, () => fill(file, path, text));
}

/**
 * Overwrites the beginning of the file, or creates it; the rest of a longer file
 * stays. One system call changes it, so no reader sees half of the text, and the file
 * system does not flush as it does after a truncation.
 */
export function overwriteText(path: string, text: string): void {
  const file = open(path, WRITE_ONLY | CREATE);
  if (file === undefined) throw refused("write", path, errnoOf("ENOENT"));
  effect(`write "${path}"`, () => fill(file, path, text));
}

/** Overwrites the beginning of an existing file; returns `false` if there is none. For files of the kernel. */
export function overwrite(path: string, text: string): boolean {
  const file = open(path, WRITE_ONLY);
  if (file === undefined) return false;
  fill(file, path, text);
  return true;
}

/** Creates the file with this text; returns `false` if it exists already. */
export function createText(path: string, text: string): boolean {
  const file = libc.open(path, WRITE_ONLY | CREATE | EXCLUSIVE | CLOSE_ON_EXEC, MODE);
  if (file < 0) {
    const errno = libc.lastErrno();
    if (errno === errnoOf("EEXIST")) return false;
    throw refused("create", path, errno);
  }
  try {
    effect(`fill "${path}"`, () => fill(file, path, text));
  } catch (failure) {
    libc.unlink(path);
    throw failure;
  }
  return true;
}

/** Returns whether the file existed. */
export function removeFile(path: string): boolean {
  const errno = effect(`remove "${path}"`, () => (libc.unlink(path) === 0 ? undefined : libc.lastErrno()));
  if (errno === undefined) return true;
  if (errno === errnoOf("ENOENT")) return false;
  throw refused("remove", path, errno);
}

/**
 * The time of the last change of the content, as text for comparison: for a folder, when
 * a name in it was last added or removed. `undefined` if the path does not exist.
 */
export function lastChangeOf(path: string): string | undefined {
  return statusAt(path)?.changed;
}

/** Whether two paths are the same file; `false` if one does not exist. */
export function isSameFile(path: string, other: string): boolean {
  const left = placeOf(path);
  return left !== undefined && left === placeOf(other);
}

/** Device and inode, as text for comparison; `undefined` if the path does not exist. */
export function placeOf(path: string): string | undefined {
  return statusAt(path)?.place;
}

function open(path: string, flags: number): number | undefined {
  const file = libc.open(path, flags | CLOSE_ON_EXEC, MODE);
  if (file >= 0) return file;
  const errno = libc.lastErrno();
  if (errno === errnoOf("ENOENT")) return undefined;
  throw refused("open", path, errno);
}

/** Valid until the next file is read. A read of a regular file or a kernel setting is short only at its end. */
function readAll(file: number, path: string): Uint8Array {
  smallBuffer ??= new Uint8Array(SMALL);
  let bytes = smallBuffer;
  let length = 0;
  for (;;) {
    const room = bytes.length - length;
    const count = libc.read(file, length === 0 ? bytes : bytes.subarray(length), room);
    if (count < 0) throw refused("read", path, libc.lastErrno());
    length += count;
    if (count < room) return bytes.subarray(0, length);
    bytes = enlarged(bytes);
  }
}

/** Writes the text and closes the file, whatever happens. */
function fill(file: number, path: string, text: string): void {
  const bytes = new TextEncoder().encode(text);
  const written = bytes.length === 0 ? 0 : libc.write(file, bytes, bytes.length);
  const errno = written < 0 ? libc.lastErrno() : errnoOf("ENOSPC");
  closeFile(file);
  // A file this small is written with one call, or the disk is full.
  if (written !== bytes.length) throw refused("write", path, errno);
}

function refused(action: string, path: string, errno: number): PluginError {
  return new PluginError("io-failure", `Cannot ${action} ${quoted(path)}: ${describeErrno(errno)}`);
}
