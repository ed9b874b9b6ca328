/** Waits for file descriptors. */
import { putNumber } from "../bytes.ts";
import { addressOf, systemCall } from "../system-call.ts";

export const POLL_IN = 0x1;
export const POLL_OUT = 0x4;

/** `struct pollfd` (descriptor, requested events, returned events) and `struct timespec` (seconds, nanoseconds). */
const AT = { descriptor: 0, events: 4, seconds: 8, nanoseconds: 16 };
const request = new Uint8Array(24);

/** Waits at most this long; a signal ends the wait early. A stream that is at its end or broken is ready for every event. */
export function isReadyWithin(descriptor: number, event: number, milliseconds: number): boolean {
  const seconds = Math.floor(milliseconds / 1_000);
  putNumber(request, AT.descriptor, descriptor);
  putNumber(request, AT.events, event);
  putNumber(request, AT.seconds, seconds);
  putNumber(request, AT.nanoseconds, (milliseconds - seconds * 1_000) * 1_000_000);
  const address = addressOf(request);
  return systemCall("ppoll", address, 1, address + AT.seconds) > 0;
}
