/**
 * Small files by the system calls themselves: read whole, write whole, create
 * where none is, remove.
 *
 * For the way of an ADD, where to load `node:fs` costs more than all the work
 * on the files (docs/decisions/0006-what-imports-cost.md). What is rare (making
 * folders, listing them) loads it when it comes to that.
 */
import { enlarged } from "../bytes.ts";
import { effect } from "../effect.ts";
import { PluginError } from "../errors.ts";
import { statusAt } from "../file-status.ts";
import { describeErrno, errnoOf } from "./errno.ts";
import * as libc from "./libc.ts";

const READ_ONLY = 0;
const WRITE_ONLY = 0o1;
const CREATE = 0o100;
const EXCLUSIVE = 0o200;
const TRUNCATE = 0o1000;
const CLOSE_ON_EXEC = 0o2000000;
/** Owner alone: who holds which address is nobody else's business. */
const MODE = 0o600;

/** Every small file fits: it is read with one system call, into memory that is used again and again. */
const SMALL = 4096;

let smallBuffer: Uint8Array | undefined;
let decoder: TextDecoder | undefined;

/** A descriptor to read by, or to name what the file stands for; `undefined` where there is none. */
export function openToRead(path: string): number | undefined {
  return open(path, READ_ONLY);
}

/** A descriptor to lock by, creating the file; `undefined` where its folder is missing. */
export function openLockFile(path: string): number | undefined {
  return open(path, READ_ONLY | CREATE);
}

export function closeFile(file: number): void {
  libc.close(file);
}

/** The whole text, or `undefined` where there is no such file. */
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

/** Replaces the content, or creates the file. Not atomic: whoever is killed in between leaves it empty. */
export function writeText(path: string, text: string): void {
  const file = open(path, WRITE_ONLY | CREATE | TRUNCATE);
  if (file === undefined) throw refused("write", path, errnoOf("ENOENT"));
  effect(`write "${path}"`, () => fill(file, path, text));
}

/**
 * Writes over the beginning of the file, or creates it; what was longer keeps
 * its tail. One system call changes it, so no reader meets half of the text,
 * and the file system does not flush as it does behind a truncation.
 */
export function overwriteText(path: string, text: string): void {
  const file = open(path, WRITE_ONLY | CREATE);
  if (file === undefined) throw refused("write", path, errnoOf("ENOENT"));
  effect(`write "${path}"`, () => fill(file, path, text));
}

/** Writes over the beginning of a file that is there; answers `false` where there is none. For files of the kernel. */
export function overwrite(path: string, text: string): boolean {
  const file = open(path, WRITE_ONLY);
  if (file === undefined) return false;
  fill(file, path, text);
  return true;
}

/** Creates the file with this text; answers `false` where one of that name is already. */
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

/** Answers whether there was one to remove. */
export function removeFile(path: string): boolean {
  const errno = effect(`remove "${path}"`, () => (libc.unlink(path) === 0 ? undefined : libc.lastErrno()));
  if (errno === undefined) return true;
  if (errno === errnoOf("ENOENT")) return false;
  throw refused("remove", path, errno);
}

/**
 * When the content last changed, as text to compare: for a folder, when a name
 * in it was last added or removed. `undefined` where nothing is.
 */
export function lastChangeOf(path: string): string | undefined {
  return statusAt(path)?.changed;
}

/** Whether two paths lead to one file; a path that leads nowhere leads to none. */
export function isSameFile(path: string, other: string): boolean {
  const left = placeOf(path);
  return left !== undefined && left === placeOf(other);
}

/** Device and inode, as text to compare; `undefined` where the path leads nowhere. */
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

/** Valid until the next file is read. Regular files, and the kernel's settings, give less than asked for only at their end. */
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
  // Files this small are written in one go, or the disk is full.
  if (written !== bytes.length) throw refused("write", path, errno);
}

function refused(action: string, path: string, errno: number): PluginError {
  return new PluginError("io-failure", `Cannot ${action} "${path}": ${describeErrno(errno)}`);
}
