/**
 * Signals that ask a process to stop, held back for a while: they reach it once
 * they are let through. To listen for them takes a process a tenth of a
 * millisecond to begin with, to hold them back a hundredth of that.
 */
import { systemCall } from "../system-call.ts";

const HOLD = 0;
const LET_THROUGH = 1;
/** A set of 64 signals: SIGHUP (1), SIGINT (2) and SIGTERM (15), each at its number less one. */
const STOP_SIGNALS = Uint8Array.of(0b11, 1 << 6, 0, 0, 0, 0, 0, 0);

/** Only of this thread: where there are others, as in a process that works, the signal reaches one of them. */
export function holdStopSignals(): void {
  systemCall("rt_sigprocmask", HOLD, STOP_SIGNALS, 0, STOP_SIGNALS.length);
}

export function letStopSignalsThrough(): void {
  systemCall("rt_sigprocmask", LET_THROUGH, STOP_SIGNALS, 0, STOP_SIGNALS.length);
}
