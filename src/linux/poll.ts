/** Waiting for descriptors. */
import { addressOf, systemCall } from "../system-call.ts";

export const POLL_IN = 0x1;
export const POLL_OUT = 0x4;

/** Waits for as long; a signal ends the wait early. A stream at its end, or broken, is ready for everything. */
export function isReadyWithin(descriptor: number, event: number, milliseconds: number): boolean {
  // `struct pollfd`: the descriptor, the events that are asked for, and those that are answered.
  const request = Int16Array.of(descriptor & 0xffff, descriptor >> 16, event, 0);
  // `struct timespec`: seconds and nanoseconds, each of 64 bits.
  const seconds = Math.floor(milliseconds / 1_000);
  const time = Int32Array.of(seconds, 0, (milliseconds - seconds * 1_000) * 1_000_000, 0);
  return systemCall("ppoll", addressOf(request), 1, addressOf(time)) > 0;
}
