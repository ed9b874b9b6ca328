/**
 * The one door to the kernel: `syscall(2)` of the C library, synchronous.
 *
 * Binding a C function costs a process 0.04 ms, and a plugin would need some
 * thirty of them: so one is bound, and the calls have their numbers here. Only
 * calls that every machine knows are listed (`openat`, not `open`).
 *
 * A buffer goes in the second place as it is; in any other place its address,
 * by `addressOf`, and the caller keeps the buffer until the call has returned.
 */
import type { Pointer } from "bun:ffi";

type Machine = "x64" | "arm64";

/** Each call with its number on each machine. */
export const SYSTEM_CALLS = {
  bind: { x64: 49, arm64: 200 },
  close: { x64: 3, arm64: 57 },
  connect: { x64: 42, arm64: 203 },
  exit_group: { x64: 231, arm64: 94 },
  fcntl: { x64: 72, arm64: 25 },
  flock: { x64: 73, arm64: 32 },
  openat: { x64: 257, arm64: 56 },
  ppoll: { x64: 271, arm64: 73 },
  read: { x64: 0, arm64: 63 },
  readlinkat: { x64: 267, arm64: 78 },
  recvfrom: { x64: 45, arm64: 207 },
  renameat2: { x64: 316, arm64: 276 },
  sendmsg: { x64: 46, arm64: 211 },
  sendto: { x64: 44, arm64: 206 },
  setns: { x64: 308, arm64: 268 },
  setsockopt: { x64: 54, arm64: 208 },
  shutdown: { x64: 48, arm64: 210 },
  socket: { x64: 41, arm64: 198 },
  socketpair: { x64: 53, arm64: 199 },
  statx: { x64: 332, arm64: 291 },
  unlinkat: { x64: 263, arm64: 35 },
  write: { x64: 1, arm64: 64 },
} as const satisfies Record<string, Readonly<Record<Machine, number>>>;

export type SystemCall = keyof typeof SYSTEM_CALLS;

/** Where a path is looked up that does not begin with a slash: the current folder. */
export const CURRENT_FOLDER = -100;

/** Versioned names: an unversioned one would also be looked for in the current folder. */
const C_LIBRARIES = ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"];

/** `FFIType` of bun:ffi, by its numbers: a number of 64 bits, read as a JavaScript number where it fits. */
const WORD = 15;
const SYMBOLS = {
  syscall: { args: [WORD, WORD, WORD, WORD, WORD, WORD, WORD], returns: WORD },
  __errno_location: { args: [], returns: WORD },
} as const;

/**
 * What the module `bun:ffi` stands on, which is there without it: to load the module takes 0.3 ms, and what it adds
 * is a look at every argument. Only numbers are passed here.
 */
const ffi: Pick<typeof import("bun:ffi"), "dlopen" | "ptr" | "read"> = Reflect.get(Bun, "FFI") ?? require("bun:ffi");

// biome-ignore lint/style/noRestrictedGlobals: which machine it is, is no fact about the process
const machine: Machine = process.arch === "arm64" ? "arm64" : "x64";

let encoder: TextEncoder | undefined;
let opened: ReturnType<typeof openLibrary> | undefined;

/** What the kernel answers; negative where it refused, and then `lastErrno()` says why. */
export function systemCall(
  call: SystemCall,
  first: number,
  second: NodeJS.TypedArray | number = 0,
  third = 0,
  fourth = 0,
  fifth = 0,
): number {
  opened ??= openLibrary();
  const word = typeof second === "number" ? second : ffi.ptr(second);
  return Number(opened.syscall(SYSTEM_CALLS[call][machine], first, word, third, fourth, fifth, 0));
}

/** The error number of the call before: ask at once. */
export function lastErrno(): number {
  opened ??= openLibrary();
  return ffi.read.i32(Number(opened.__errno_location()) as Pointer, 0);
}

export function addressOf(buffer: NodeJS.TypedArray): number {
  return ffi.ptr(buffer);
}

/** A path as the kernel wants it, with a zero behind. */
export function pathBytes(path: string): Uint8Array {
  encoder ??= new TextEncoder();
  return encoder.encode(`${path}\0`);
}

function openLibrary() {
  for (const name of C_LIBRARIES) {
    try {
      return ffi.dlopen(name, SYMBOLS).symbols;
    } catch {
      // The next C library may be the one of this host.
    }
  }
  throw new Error(`none of ${C_LIBRARIES.join(", ")} could be opened`);
}
