/**
 * The few functions of the C library that reach the kernel where Bun has none.
 *
 * The library is opened on first use, because each bound symbol costs start-up
 * time; files are a group of their own for the same reason. All calls are
 * synchronous, and `errno` is read straight after a failed call.
 */
import type { Pointer } from "bun:ffi";

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

const FILE_SYMBOLS = {
  open: { args: ["cstring", "i32", "u32"], returns: "i32" },
  close: { args: ["i32"], returns: "i32" },
  read: { args: ["i32", "ptr", "u64"], returns: "i32" },
  write: { args: ["i32", "ptr", "u64"], returns: "i32" },
  unlink: { args: ["cstring"], returns: "i32" },
  statx: { args: ["i32", "cstring", "i32", "u32", "ptr"], returns: "i32" },
  flock: { args: ["i32", "i32"], returns: "i32" },
  poll: { args: ["ptr", "u64", "i32"], returns: "i32" },
  fcntl: { args: ["i32", "i32"], returns: "i32" },
  readlink: { args: ["cstring", "ptr", "u64"], returns: "i32" },
  socket: { args: ["i32", "i32", "i32"], returns: "i32" },
  connect: { args: ["i32", "ptr", "u32"], returns: "i32" },
  shutdown: { args: ["i32", "i32"], returns: "i32" },
  _exit: { args: ["i32"], returns: "void" },
  __errno_location: { args: [], returns: "ptr" },
} as const;

/** Loaded when it is needed: it costs half of what VERSION costs, which needs none of it. */
const ffi = (): typeof import("bun:ffi") => require("bun:ffi");
const openSocketLibrary = () => ffi().dlopen(LIBRARY, SYMBOLS).symbols;
const openFileLibrary = () => ffi().dlopen(LIBRARY, FILE_SYMBOLS).symbols;

let socketLibrary: ReturnType<typeof openSocketLibrary> | undefined;
let fileLibrary: ReturnType<typeof openFileLibrary> | undefined;

/** Sockets and namespaces. */
export function libc(): ReturnType<typeof openSocketLibrary> {
  socketLibrary ??= openSocketLibrary();
  return socketLibrary;
}

/** Files and locks on them, streams, and sockets of this host: all that a process needs that hands its call over. */
export function fileCalls(): ReturnType<typeof openFileLibrary> {
  fileLibrary ??= openFileLibrary();
  return fileLibrary;
}

/** The error number of the file call before: ask at once. */
export function lastFileErrno(): number {
  return errnoAt(fileCalls().__errno_location());
}

/** The error number of the call before: ask at once. */
export function lastErrno(): number {
  return errnoAt(libc().__errno_location());
}

function errnoAt(location: Pointer | bigint | null): number {
  return typeof location === "number" ? ffi().read.i32(location, 0) : 0;
}
