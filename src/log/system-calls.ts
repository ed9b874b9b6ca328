/**
 * The few system calls that a log line needs, directly from the C library.
 *
 * `node:fs` would work, but loading it takes a short-lived process longer than
 * everything else a log line needs (docs/decisions/0006-what-imports-cost.md).
 */
import { addressOf, CURRENT_FOLDER, lastErrno, pathBytes, systemCall } from "../system-call.ts";

/** Write only, create, append, never block (a pipe without a reader must not delay a command), close on exec. */
const APPEND_FLAGS = 0o1 | 0o100 | 0o2000 | 0o4000 | 0o2000000;
const MODE = 0o600;
const NO_SUCH_FILE = 2;
const LOCK_EXCLUSIVELY_WITHOUT_WAITING = 2 | 4;

/** Returns the descriptor, or `undefined` if the directory is missing. */
export function openToAppend(path: string): number | undefined {
  const file = systemCall("openat", CURRENT_FOLDER, pathBytes(path), APPEND_FLAGS, MODE);
  if (file >= 0) return file;
  const errorNumber = lastErrno();
  if (errorNumber === NO_SUCH_FILE) return undefined;
  throw systemCallError("open", errorNumber);
}

export function closeFile(file: number): void {
  systemCall("close", file);
}

/** One write; returns how many bytes were written. */
export function writeOnce(file: number, bytes: Uint8Array): number {
  const written = systemCall("write", file, bytes, bytes.length);
  if (written < 0) throw systemCallError("write", lastErrno());
  return written;
}

/** Returns immediately: true if we hold the lock until the file is closed, false if another process holds it. */
export function tryLock(file: number): boolean {
  return systemCall("flock", file, LOCK_EXCLUSIVELY_WITHOUT_WAITING) === 0;
}

export function renameFile(from: string, to: string): void {
  const target = pathBytes(to);
  if (systemCall("renameat2", CURRENT_FOLDER, pathBytes(from), CURRENT_FOLDER, addressOf(target)) !== 0)
    throw systemCallError("rename", lastErrno());
}

function systemCallError(call: string, errorNumber: number): Error {
  // Loaded here because only a failure needs the names of the errors.
  const { getSystemErrorMap }: typeof import("node:util") = require("node:util");
  const [name, meaning] = getSystemErrorMap().get(-errorNumber) ?? [`error ${errorNumber}`, "unknown"];
  return new Error(`${call}: ${meaning} (${name})`);
}
