/**
 * The few system calls that a log line costs, straight from the C library.
 *
 * `node:fs` would do, but to load it takes a short-lived process longer than
 * everything else a log line needs (docs/decisions/0006-what-imports-cost.md).
 * The library is opened at the first call.
 */
import { dlopen, read } from "bun:ffi";

/** Versioned names only: an unversioned one would also be looked for in the current folder. */
const C_LIBRARIES = ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"];

const SYMBOLS = {
  open: { args: ["cstring", "i32", "u32"], returns: "i32" },
  close: { args: ["i32"], returns: "i32" },
  // A line is far below 2^31 bytes, so 32 bits hold the answer.
  write: { args: ["i32", "ptr", "u64"], returns: "i32" },
  rename: { args: ["cstring", "cstring"], returns: "i32" },
  statx: { args: ["i32", "cstring", "i32", "u32", "ptr"], returns: "i32" },
  flock: { args: ["i32", "i32"], returns: "i32" },
  __errno_location: { args: [], returns: "ptr" },
} as const;

/** Write only, create, append, never block (a pipe that nobody reads must not hold up a command), close on exec. */
const APPEND_FLAGS = 0o1 | 0o100 | 0o2000 | 0o4000 | 0o2000000;
const MODE = 0o600;
const NO_SUCH_FILE = 2;
const CURRENT_FOLDER = -100;
const OF_THE_FILE_ITSELF = 0x1000;
const BASIC_STATUS = 0x7ff;
const TYPE_BITS = 0o170000;
const REGULAR_FILE = 0o100000;
const LOCK_EXCLUSIVELY_WITHOUT_WAITING = 2 | 4;

/** Which file it is, and how it stands. */
export interface FileStatus {
  /** Device and inode: the same for two names of the same file. */
  readonly identity: string;
  readonly isRegular: boolean;
  readonly size: number;
  /** How many names it has; 0 once it has been removed. */
  readonly links: number;
  readonly changedSeconds: number;
}

/** The descriptor, or `undefined` when the folder is missing. */
export function openToAppend(path: string): number | undefined {
  const file = library().open(path, APPEND_FLAGS, MODE);
  if (file >= 0) return file;
  const errorNumber = lastErrorNumber();
  if (errorNumber === NO_SUCH_FILE) return undefined;
  throw systemCallError("open", errorNumber);
}

export function closeFile(file: number): void {
  library().close(file);
}

/** One write; answers how many of the bytes the system took. */
export function writeOnce(file: number, bytes: Uint8Array): number {
  const written = library().write(file, bytes, bytes.length);
  if (written < 0) throw systemCallError("write", lastErrorNumber());
  return written;
}

/** Answers at once: true when the lock is ours until the file is closed, false when somebody else holds it. */
export function tryLock(file: number): boolean {
  return library().flock(file, LOCK_EXCLUSIVELY_WITHOUT_WAITING) === 0;
}

export function renameFile(from: string, to: string): void {
  if (library().rename(from, to) !== 0) throw systemCallError("rename", lastErrorNumber());
}

export function statusOf(file: number): FileStatus {
  const status = statusFrom(file, "", OF_THE_FILE_ITSELF);
  if (status === undefined) throw systemCallError("statx", lastErrorNumber());
  return status;
}

/** `undefined` when the path leads nowhere. */
export function statusAt(path: string): FileStatus | undefined {
  return statusFrom(CURRENT_FOLDER, path, 0);
}

/** `struct statx` has one layout on every machine, `struct stat` has not. */
function statusFrom(folder: number, path: string, flags: number): FileStatus | undefined {
  const bytes = new Uint8Array(256);
  if (library().statx(folder, path, flags, BASIC_STATUS, bytes) !== 0) return undefined;
  const view = new DataView(bytes.buffer);
  return {
    identity: `${view.getUint32(136, true)}:${view.getUint32(140, true)}:${view.getBigUint64(32, true)}`,
    isRegular: (view.getUint16(28, true) & TYPE_BITS) === REGULAR_FILE,
    size: Number(view.getBigUint64(40, true)),
    links: view.getUint32(16, true),
    changedSeconds: Number(view.getBigInt64(112, true)),
  };
}

let opened: ReturnType<typeof openLibrary> | undefined;

function library(): ReturnType<typeof openLibrary> {
  opened ??= openLibrary();
  return opened;
}

function openLibrary() {
  for (const name of C_LIBRARIES) {
    try {
      return dlopen(name, SYMBOLS).symbols;
    } catch {
      // The next C library may be the one of this host.
    }
  }
  throw new Error(`none of ${C_LIBRARIES.join(", ")} could be opened`);
}

function lastErrorNumber(): number {
  const location = library().__errno_location();
  return typeof location === "number" ? read.i32(location, 0) : 0;
}

function systemCallError(call: string, errorNumber: number): Error {
  // Loaded here, because only a failure needs the names of the errors.
  const { getSystemErrorMap }: typeof import("node:util") = require("node:util");
  const [name, meaning] = getSystemErrorMap().get(-errorNumber) ?? [`error ${errorNumber}`, "unknown"];
  return new Error(`${call}: ${meaning} (${name})`);
}
