/**
 * The standard streams of a process that lives for some milliseconds, and its
 * end, by the system calls themselves: the language runtime would start threads
 * to read and to write.
 */
import { systemCall } from "../system-call.ts";
import { isReadyWithin, POLL_IN } from "./poll.ts";

const STDIN = 0;
const GET_FLAGS = 1;
const CLOSE_ON_EXEC = 1;
/** A network config, with room to spare; a page that is not touched costs nothing. */
const FIRST_BYTES = 8 * 1024;

export interface ReadSoFar {
  readonly bytes: Uint8Array;
  /** `false`: more may come; to wait for it would stop the whole thread, signals included. */
  readonly isAll: boolean;
}

/** What can be read from stdin without waiting for longer than that between two pieces. */
export function readReadyStdin(patienceMilliseconds = 0): ReadSoFar {
  let buffer = new Uint8Array(FIRST_BYTES);
  let length = 0;
  while (isReadyWithin(STDIN, POLL_IN, patienceMilliseconds)) {
    if (length === buffer.length) buffer = enlarged(buffer);
    const count = systemCall("read", STDIN, buffer.subarray(length), buffer.length - length);
    // A failure will be met, and told, by whoever reads the rest.
    if (count < 0) break;
    if (count === 0) return { bytes: buffer.subarray(0, length), isAll: true };
    length += count;
  }
  return { bytes: buffer.subarray(0, length), isAll: false };
}

/** Waits until all is taken. Answers what could not be written: where the stream is gone, or does not wait. */
export function writeToStream(stream: 1 | 2, bytes: Uint8Array): Uint8Array {
  let rest = bytes;
  while (rest.length > 0) {
    const count = systemCall("write", stream, rest, rest.length);
    if (count <= 0) break;
    rest = rest.subarray(count);
  }
  return rest;
}

/** Ends the process here and now: nothing is tidied up. */
export function exitNow(code: number): void {
  systemCall("exit_group", code);
}

/** Whether a program that this process became would find the descriptor closed. */
export function isClosedOnExec(descriptor: number): boolean {
  return (systemCall("fcntl", descriptor, GET_FLAGS) & CLOSE_ON_EXEC) !== 0;
}

function enlarged(buffer: Uint8Array): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(buffer.length * 2);
  larger.set(buffer);
  return larger;
}
