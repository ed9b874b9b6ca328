/**
 * Has the kernel end this process if it does not live, so that whoever has started it, the kubelet or systemd, starts it again.
 *
 *   each 5 s: does it live? ─┬─ yes ──> the kernel's timer is set to a minute
 *                            └─ no, or the process is blocked and does not come to ask ──> the timer goes on
 *   the timer has run out ──> SIGALRM ends the process: exit code 142
 *
 * Nobody asks from outside: whoever reaches a port can connect faster than anybody accepts, and would have a healthy program
 * restarted. It needs no further process or thread. The kernel does not end the first process of a PID namespace this way.
 */
import { systemCall } from "../system-call.ts";
import type { HealthReply } from "./pages.ts";

export interface Watched {
  readonly liveness: () => HealthReply;
  readonly log: (message: string) => void;
  readonly checkMilliseconds?: number;
  readonly limitMilliseconds?: number;
}

const CHECK_MILLISECONDS = 5_000;
const LIMIT_MILLISECONDS = 60_000;

/** Returns a function that ends it. A process has one at a time. */
export function watchOver({
  liveness,
  log,
  checkMilliseconds = CHECK_MILLISECONDS,
  limitMilliseconds = LIMIT_MILLISECONDS,
}: Watched): () => void {
  let isLive = true;
  const check = () => {
    const { status, text } = liveness();
    const wasLive = isLive;
    isLive = status === 200;
    if (isLive) setTimer(limitMilliseconds);
    else if (wasLive) log(`Does not live, and will be ended by SIGALRM after ${limitMilliseconds / 1_000} s: ${text}`);
  };
  resetDisposition();
  setTimer(limitMilliseconds);
  const checks = setInterval(check, checkMilliseconds);
  return () => {
    clearInterval(checks);
    setTimer(0);
  };
}

const SIGALRM = 14;
const ITIMER_REAL = 0;
const UNBLOCK = 1;
/** Of a set of signals. */
const SET_BYTES = 8;
/** Of `struct sigaction` as the kernel has it; zeros are the default: the signal ends the process. */
const ACTION_BYTES = 32;

/** A parent may have ignored or blocked it. */
function resetDisposition(): void {
  systemCall("rt_sigaction", SIGALRM, new Uint8Array(ACTION_BYTES), 0, SET_BYTES);
  systemCall("rt_sigprocmask", UNBLOCK, BigUint64Array.of(1n << BigInt(SIGALRM - 1)), 0, SET_BYTES);
}

/** 0 stops it. The time that a host sleeps does not count. */
function setTimer(milliseconds: number): void {
  const microseconds = BigInt(Math.round(milliseconds * 1_000));
  // `struct itimerval`: no interval; seconds and microseconds.
  systemCall("setitimer", ITIMER_REAL, BigInt64Array.of(0n, 0n, microseconds / 1_000_000n, microseconds % 1_000_000n));
}
