/**
 * An exclusive lock on an open file, held until the file is closed.
 *
 * The kernel gives it back when the holder dies, however it dies; a lock made
 * of files would not survive a SIGKILL. The C library is opened at the first
 * use only: a process that never rotates its log never pays for it.
 */
import { dlopen } from "bun:ffi";

/** Versioned names only: an unversioned one would also be looked for in the current folder. */
const C_LIBRARIES = ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"];
const LOCK_EXCLUSIVE = 2;
const LOCK_WITHOUT_WAITING = 4;

let flock: ((file: number, operation: number) => number) | undefined;

/** Answers at once: true when the lock is ours, false when somebody else holds it. */
export function tryLock(file: number): boolean {
  flock ??= openFlock();
  return flock(file, LOCK_EXCLUSIVE | LOCK_WITHOUT_WAITING) === 0;
}

function openFlock(): (file: number, operation: number) => number {
  for (const library of C_LIBRARIES) {
    try {
      return dlopen(library, { flock: { args: ["i32", "i32"], returns: "i32" } }).symbols.flock;
    } catch {
      // The next C library may be the one of this host.
    }
  }
  throw new Error(`Cannot lock the log file: none of ${C_LIBRARIES.join(", ")} could be opened`);
}
