/** What the kernel knows of a file, by one system call: where it is, what it is, and when its content last changed. */
import { addressOf, CURRENT_FOLDER, pathBytes, systemCall } from "./system-call.ts";

export interface FileStatus {
  /** Device and inode, as text to compare: the same for two names of the same file. */
  readonly place: string;
  readonly isRegular: boolean;
  readonly size: number;
  /** How many names it has; 0 once it has been removed. */
  readonly links: number;
  /** Seconds and nanoseconds, as text to compare. */
  readonly changed: string;
  readonly changedSeconds: number;
}

const OF_THE_FILE_ITSELF = 0x1000;
const BASIC_STATUS = 0x7ff;
const TYPE_BITS = 0o170000;
const REGULAR_FILE = 0o100000;

/** `struct statx` has one layout on every machine, `struct stat` has not. */
const BYTES = 256;
const AT = { links: 16, mode: 28, inode: 32, size: 40, changedSeconds: 112, changedNanoseconds: 120, device: 136 };

/** Used for every answer: each is read before the next question. */
const answer = memoryOf(BYTES);

/** `undefined` where the path leads nowhere. */
export function statusAt(path: string): FileStatus | undefined {
  return statusFrom(CURRENT_FOLDER, path, 0);
}

/** As `statusAt`, of a name in a folder that is open. */
export function statusIn(folder: number, name: string): FileStatus | undefined {
  return statusFrom(folder, name, 0);
}

/** `undefined` where the descriptor is none. */
export function statusOf(file: number): FileStatus | undefined {
  return statusFrom(file, "", OF_THE_FILE_ITSELF);
}

function statusFrom(folder: number, path: string, flags: number): FileStatus | undefined {
  const { bytes, view } = answer;
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
