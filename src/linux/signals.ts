/**
 * Blocks the signals that ask a process to stop: they are delivered when they are
 * unblocked. Installing handlers costs a process a tenth of a millisecond, blocking the
 * signals a hundredth of that.
 */
import { putNumber } from "../bytes.ts";
import { systemCall } from "../system-call.ts";

const BLOCK = 0;
const UNBLOCK = 1;
/** A set of signals has 64 bits; the bit of a signal is its number minus one. */
const SET_BYTES = 8;
const SIGHUP = 1;
const SIGINT = 2;
const SIGTERM = 15;
const STOP_SIGNALS = (1 << (SIGHUP - 1)) | (1 << (SIGINT - 1)) | (1 << (SIGTERM - 1));

/** Blocks them for this thread only: if the process has other threads, one of those gets the signal. */
export function blockStopSignals(): void {
  changeMask(BLOCK);
}

export function unblockStopSignals(): void {
  changeMask(UNBLOCK);
}

function changeMask(how: number): void {
  const set = new Uint8Array(SET_BYTES);
  putNumber(set, 0, STOP_SIGNALS);
  systemCall("rt_sigprocmask", how, set, 0, SET_BYTES);
}
