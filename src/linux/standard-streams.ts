/**
 * The standard streams of a process that lives for some milliseconds, and its
 * end, by the system calls themselves: the language runtime would start threads
 * to read and to write.
 */
import { enlarged } from "../bytes.ts";
import { addressOf, systemCall } from "../system-call.ts";
import { isReadyWithin, POLL_IN } from "./poll.ts";

const STDIN = 0;
const GET_FLAGS = 1;
const CLOSE_ON_EXEC = 1;
/** A network config, with room to spare; a page that is not touched costs nothing. */
const FIRST_BYTES = 8 * 1024;

export interface ReadSoFar {
  /** What was read lies in `[from, to)`. */
  readonly bytes: Uint8Array;
  readonly from: number;
  readonly to: number;
  /** `false`: more may come; to wait for it would stop the whole thread, signals included. */
  readonly isAll: boolean;
}

/** What can be read from stdin without waiting for longer than that between two pieces. Leaves room before it. */
export function readReadyStdin(patienceMilliseconds = 0, room = 0): ReadSoFar {
  let bytes = new Uint8Array(room + FIRST_BYTES);
  let to = room;
  let isAll = false;
  while (!isAll && isReadyWithin(STDIN, POLL_IN, patienceMilliseconds)) {
    if (to === bytes.length) bytes = enlarged(bytes);
    const count = systemCall("read", STDIN, addressOf(bytes) + to, bytes.length - to);
    // A failure will be met, and told, by whoever reads the rest.
    if (count < 0) break;
    isAll = count === 0;
    to += count;
  }
  return { bytes, from: room, to, isAll };
}

/** Waits until all is taken. Answers where what could not be written begins: the stream is gone, or does not wait. */
export function writeToStream(stream: 1 | 2, bytes: Uint8Array, from: number, to: number): number {
  let at = from;
  while (at < to) {
    const count = systemCall("write", stream, addressOf(bytes) + at, to - at);
    if (count <= 0) break;
    at += count;
  }
  return at;
}

/** Ends the process here and now: nothing is tidied up. */
export function exitNow(code: number): void {
  systemCall("exit_group", code);
}

/** Whether a program that this process became would find the descriptor closed. */
export function isClosedOnExec(descriptor: number): boolean {
  return (systemCall("fcntl", descriptor, GET_FLAGS) & CLOSE_ON_EXEC) !== 0;
}
