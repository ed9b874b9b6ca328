/**
 * Standard streams and exit with direct system calls, for a process that lives for
 * some milliseconds: the language runtime would start threads to read and to write.
 */
import { enlarged } from "../bytes.ts";
import { addressOf, systemCall } from "../system-call.ts";
import { isReadyWithin, POLL_IN } from "./poll.ts";

const STDIN = 0;
const GET_FLAGS = 1;
const CLOSE_ON_EXEC = 1;
/** More than enough for a network config; memory that is not touched costs nothing. */
const FIRST_BYTES = 8 * 1024;

export interface ReadSoFar {
  /** What was read is in `[from, to)`. */
  readonly bytes: Uint8Array;
  readonly from: number;
  readonly to: number;
  /** `false`: more may come; waiting for it would stop the whole thread, including signals. */
  readonly isAll: boolean;
}

/** Reads from stdin without waiting longer than this for each piece. Leaves `room` bytes free before it. */
export function readReadyStdin(patienceMilliseconds = 0, room = 0): ReadSoFar {
  let bytes = new Uint8Array(room + FIRST_BYTES);
  let to = room;
  let isAll = false;
  while (!isAll && isReadyWithin(STDIN, POLL_IN, patienceMilliseconds)) {
    if (to === bytes.length) bytes = enlarged(bytes);
    const count = systemCall("read", STDIN, addressOf(bytes) + to, bytes.length - to);
    // Whoever reads the rest gets and reports the same error.
    if (count < 0) break;
    isAll = count === 0;
    to += count;
  }
  return { bytes, from: room, to, isAll };
}

/** Blocks until everything is written. Returns the offset of what could not be written: the stream is closed or non-blocking. */
export function writeToStream(stream: 1 | 2, bytes: Uint8Array, from: number, to: number): number {
  let at = from;
  while (at < to) {
    const count = systemCall("write", stream, addressOf(bytes) + at, to - at);
    if (count <= 0) break;
    at += count;
  }
  return at;
}

/** Ends the process immediately, without cleanup. */
export function exitNow(code: number): void {
  systemCall("exit_group", code);
}

/** Whether the descriptor would be closed by `execve`. */
export function isClosedOnExec(descriptor: number): boolean {
  return (systemCall("fcntl", descriptor, GET_FLAGS) & CLOSE_ON_EXEC) !== 0;
}
