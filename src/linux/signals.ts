/**
 * Signals that ask a process to stop, held back for a while: they reach it once
 * they are let through. To listen for them takes a process a tenth of a
 * millisecond to begin with, to hold them back a hundredth of that.
 */
import { putNumber } from "../bytes.ts";
import { systemCall } from "../system-call.ts";

const HOLD = 0;
const LET_THROUGH = 1;
/** A set of signals has 64 bits; each signal stands at its number less one. */
const SET_BYTES = 8;
const SIGHUP = 1;
const SIGINT = 2;
const SIGTERM = 15;
const STOP_SIGNALS = (1 << (SIGHUP - 1)) | (1 << (SIGINT - 1)) | (1 << (SIGTERM - 1));

/** Only of this thread: where there are others, as in a process that works, the signal reaches one of them. */
export function holdStopSignals(): void {
  changeMask(HOLD);
}

export function letStopSignalsThrough(): void {
  changeMask(LET_THROUGH);
}

function changeMask(how: number): void {
  const set = new Uint8Array(SET_BYTES);
  putNumber(set, 0, STOP_SIGNALS);
  systemCall("rt_sigprocmask", how, set, 0, SET_BYTES);
}
