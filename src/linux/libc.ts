/**
 * The few functions of the C library that reach the kernel where Bun has none.
 *
 * The library is opened on first use, because each bound symbol costs start-up
 * time; locks are a group of their own for the same reason. All calls are
 * synchronous, and `errno` is read straight after a failed call.
 */
import { dlopen, type Pointer, read } from "bun:ffi";

// A versioned soname: an unknown name would be looked up in the working directory.
const LIBRARY = "libc.so.6";

// Lengths here are far below 2^31, so 32 bits hold what sendto and recv answer.
const SYMBOLS = {
  socket: { args: ["i32", "i32", "i32"], returns: "i32" },
  bind: { args: ["i32", "ptr", "u32"], returns: "i32" },
  setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" },
  sendto: { args: ["i32", "ptr", "u64", "i32", "ptr", "u32"], returns: "i32" },
  recv: { args: ["i32", "ptr", "u64", "i32"], returns: "i32" },
  setns: { args: ["i32", "i32"], returns: "i32" },
  __errno_location: { args: [], returns: "ptr" },
} as const;

const LOCK_SYMBOLS = {
  flock: { args: ["i32", "i32"], returns: "i32" },
  __errno_location: { args: [], returns: "ptr" },
} as const;

const openSocketLibrary = () => dlopen(LIBRARY, SYMBOLS).symbols;
const openLockLibrary = () => dlopen(LIBRARY, LOCK_SYMBOLS).symbols;

let socketLibrary: ReturnType<typeof openSocketLibrary> | undefined;
let lockLibrary: ReturnType<typeof openLockLibrary> | undefined;

/** Sockets and namespaces. */
export function libc(): ReturnType<typeof openSocketLibrary> {
  socketLibrary ??= openSocketLibrary();
  return socketLibrary;
}

/** Calls flock(2); answers 0 or the error number. */
export function flock(fd: number, operation: number): number {
  lockLibrary ??= openLockLibrary();
  return lockLibrary.flock(fd, operation) === 0 ? 0 : errnoAt(lockLibrary.__errno_location());
}

/** The error number of the call before: ask at once. */
export function lastErrno(): number {
  return errnoAt(libc().__errno_location());
}

function errnoAt(location: Pointer | bigint | null): number {
  return typeof location === "number" ? read.i32(location, 0) : 0;
}
