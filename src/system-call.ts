/**
 * All system calls: `syscall(2)` of the C library, synchronous.
 *
 * Binding a C function costs a process 0.04 ms, and a plugin would need about
 * thirty of them: so only this one is bound, with the numbers of the calls here. Only
 * calls that exist on every architecture are listed (`openat`, not `open`).
 *
 * A buffer can be passed directly as the second argument; as any other argument pass
 * its address, from `addressOf`, and keep the buffer until the call has returned.
 */
import type { Pointer } from "bun:ffi";
import { putText } from "./bytes.ts";

/** Each call with its number on each architecture. */
export const SYSTEM_CALLS = {
  bind: [49, 200],
  close: [3, 57],
  connect: [42, 203],
  execve: [59, 221],
  exit_group: [231, 94],
  fcntl: [72, 25],
  flock: [73, 32],
  geteuid: [107, 175],
  getpid: [39, 172],
  getppid: [110, 173],
  getsockname: [51, 204],
  getsockopt: [55, 209],
  ioctl: [16, 29],
  mount: [165, 40],
  openat: [257, 56],
  ppoll: [271, 73],
  prctl: [157, 167],
  read: [0, 63],
  readlinkat: [267, 78],
  recvfrom: [45, 207],
  renameat2: [316, 276],
  rt_sigaction: [13, 134],
  rt_sigprocmask: [14, 135],
  sendto: [44, 206],
  setitimer: [38, 103],
  setns: [308, 268],
  setsockopt: [54, 208],
  shutdown: [48, 210],
  socket: [41, 198],
  statx: [332, 291],
  umount2: [166, 39],
  unlinkat: [263, 35],
  unshare: [272, 97],
  write: [1, 64],
} as const satisfies Record<string, readonly [x64: number, arm64: number]>;

export type SystemCall = keyof typeof SYSTEM_CALLS;

/** A relative path is looked up in the current folder (AT_FDCWD). */
export const CURRENT_FOLDER = -100;

/** Versioned names: an unversioned name would also be searched in the current folder. */
const C_LIBRARIES = ["libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"];

/** `FFIType` of bun:ffi, as a number: a 64-bit integer, returned as a JavaScript number if it fits. */
const WORD = 15;
const CALL = { syscall: { args: [WORD, WORD, WORD, WORD, WORD, WORD, WORD], returns: WORD } } as const;
const UNSET = { unsetenv: { args: [WORD], returns: WORD } } as const;
/** Bound at its first use: a call that is handed over to the agent does not need it. */
const ERROR_NUMBER = { __errno_location: { args: [], returns: WORD } } as const;

/**
 * The object beneath the module `bun:ffi`, available without it: loading the module takes 0.3 ms, and all it adds
 * is a check of every argument. Only numbers are passed here.
 */
type Ffi = Pick<typeof import("bun:ffi"), "dlopen" | "ptr" | "read">;
const { FFI: ffi } = Bun as typeof Bun & { readonly FFI: Ffi };

// biome-ignore lint/style/noRestrictedGlobals: the architecture is not a fact about the process
const column = process.arch === "arm64" ? 1 : 0;

let bound: ReturnType<typeof bindCall> | undefined;
let errorNumber: ReturnType<typeof bindErrorNumber> | undefined;

/** Returns what the kernel returns; if negative, the call failed, and `lastErrno()` returns the reason. */
export function systemCall(
  call: SystemCall,
  first: number,
  second: NodeJS.TypedArray | number = 0,
  third = 0,
  fourth = 0,
  fifth = 0,
  sixth = 0,
): number {
  bound ??= bindCall();
  const word = typeof second === "number" ? second : ffi.ptr(second);
  return Number(bound(SYSTEM_CALLS[call][column], first, word, third, fourth, fifth, sixth));
}

/** The error number of the previous call: read it at once. */
export function lastErrno(): number {
  errorNumber ??= bindErrorNumber();
  return ffi.read.i32(Number(errorNumber()) as Pointer, 0);
}

export function addressOf(buffer: NodeJS.TypedArray): number {
  return ffi.ptr(buffer);
}

/** A path as the kernel expects it, with a zero byte at the end. */
export function pathBytes(path: string): Uint8Array {
  const bytes = new Uint8Array(path.length + 1);
  return putText(bytes, 0, path) === undefined ? new TextEncoder().encode(`${path}\0`) : bytes;
}

/**
 * Removes a variable from the environment that C code sees, by `unsetenv(3)`. Deleting it from `process.env` is not
 * enough: the language runtime's TLS code calls `getenv`.
 */
export function unsetVariable(name: string): void {
  const bytes = pathBytes(name);
  fromLibrary((library) => ffi.dlopen(library, UNSET).symbols.unsetenv)(ffi.ptr(bytes));
}

function bindCall() {
  return fromLibrary((name) => ffi.dlopen(name, CALL).symbols.syscall);
}

function bindErrorNumber() {
  return fromLibrary((name) => ffi.dlopen(name, ERROR_NUMBER).symbols.__errno_location);
}

function fromLibrary<Bound>(bind: (library: string) => Bound): Bound {
  for (const name of C_LIBRARIES) {
    try {
      return bind(name);
    } catch {
      // The next C library may be the one on this host.
    }
  }
  throw new Error(`none of the C libraries ${C_LIBRARIES.join(", ")} could be opened`);
}
