/** The status of a file, by one system call: its inode, its type, its size and its modification time. */
import { addressOf, CURRENT_FOLDER, pathBytes, systemCall } from "./system-call.ts";

export interface FileStatus {
  /** Device and inode, as text for comparison: equal for two names of the same file. */
  readonly place: string;
  readonly isRegular: boolean;
  readonly size: number;
  /** The number of hard links; 0 after it has been removed. */
  readonly links: number;
  /** Seconds and nanoseconds, as text for comparison. */
  readonly changed: string;
  readonly changedSeconds: number;
}

const EMPTY_PATH = 0x1000;
const BASIC_STATUS = 0x7ff;
const TYPE_BITS = 0o170000;
const REGULAR_FILE = 0o100000;

/** `struct statx` has the same layout on every architecture, unlike `struct stat`. */
const BYTES = 256;
const AT = { links: 16, mode: 28, inode: 32, size: 40, changedSeconds: 112, changedNanoseconds: 120, device: 136 };

/** Reused by every call: each result is read before the next call. */
const result = memoryOf(BYTES);

/** `undefined` if the file does not exist or cannot be reached. */
export function statusAt(path: string): FileStatus | undefined {
  return statusFrom(CURRENT_FOLDER, path, 0);
}

/** Like `statusAt`, for a name in an open folder. */
export function statusIn(folder: number, name: string): FileStatus | undefined {
  return statusFrom(folder, name, 0);
}

/** `undefined` if the descriptor is not open. */
export function statusOf(file: number): FileStatus | undefined {
  return statusFrom(file, "", EMPTY_PATH);
}

function statusFrom(folder: number, path: string, flags: number): FileStatus | undefined {
  const { bytes, view } = result;
  if (systemCall("statx", folder, pathBytes(path), flags, BASIC_STATUS, addressOf(bytes)) !== 0) return undefined;
  const seconds = view.getBigInt64(AT.changedSeconds, true);
  return {
    place: `${view.getBigUint64(AT.device, true)}/${view.getBigUint64(AT.inode, true)}`,
    isRegular: (view.getUint16(AT.mode, true) & TYPE_BITS) === REGULAR_FILE,
    size: Number(view.getBigUint64(AT.size, true)),
    links: view.getUint32(AT.links, true),
    changed: `${seconds}.${view.getUint32(AT.changedNanoseconds, true)}`,
    changedSeconds: Number(seconds),
  };
}

function memoryOf(length: number) {
  const buffer = new ArrayBuffer(length);
  return { bytes: new Uint8Array(buffer), view: new DataView(buffer) };
}
