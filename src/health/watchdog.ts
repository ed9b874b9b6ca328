/**
 * Has the kernel end this process if it is not live, so that whoever has started it, the kubelet or systemd, starts it again.
 *
 *   each 5 s: is it live? ─┬─ yes ──> the kernel's timer is set to 3 minutes
 *                          └─ no, or the process is blocked and does not come to ask ──> the timer goes on
 *   the timer has run out ──> SIGALRM ends the process: exit code 142
 *   before a call of the kernel that may take long, ──> the timer is set to an hour, and to 3 minutes after it
 *   such as the first policy table after a boot
 *
 * Nobody asks from outside: whoever reaches a port can connect faster than anybody accepts, and would have a healthy program
 * restarted. It needs no further process or thread. The kernel does not end the first process of a PID namespace this way:
 * such a process ends itself, unless it is blocked.
 */
import { lastErrno, type SystemCall, systemCall } from "../system-call.ts";
import type { HealthReply } from "./pages.ts";

export interface WatchOptions {
  readonly warn: (message: string) => void;
  readonly checkMilliseconds?: number | undefined;
  readonly limitMilliseconds?: number | undefined;
  readonly longMilliseconds?: number | undefined;
}

export interface Watch {
  /** From now on. Before, and after `undefined`, the process is live if it is not blocked. */
  ask(liveness: (() => HealthReply) | undefined): void;
  /** Runs what the kernel may be busy with for longer than the limit, and would be again after a restart: its time does not count. */
  patiently<Result>(work: () => Result): Result;
  end(): void;
}

const CHECK_MILLISECONDS = 5_000;
/** The kernel may keep a process waiting for a minute, as while it removes thousands of links. */
const LIMIT_MILLISECONDS = 180_000;
/** The kernel needs minutes for a table with millions of elements or tens of thousands of sets. */
const LONG_MILLISECONDS = 3_600_000;
/** 128 + SIGALRM. */
const EXIT_CODE = 142;

/** As the first thing of a process, which has one. */
export function watchOver(options: WatchOptions): Watch {
  const { warn, checkMilliseconds = CHECK_MILLISECONDS, limitMilliseconds = LIMIT_MILLISECONDS } = options;
  const { longMilliseconds = LONG_MILLISECONDS } = options;
  let liveness: (() => HealthReply) | undefined;
  let [isLive, liveAt, hasFailed, isEnded] = [true, performance.now(), false, false];
  const failed = (call: SystemCall) => {
    if (!hasFailed) warn(`The kernel will not end this process if it is blocked: ${call} failed, error ${lastErrno()}`);
    hasFailed = true;
  };
  const check = () => {
    const { status, text } = liveness?.() ?? { status: 200, text: "" };
    const wasLive = isLive;
    isLive = status === 200;
    if (isLive) {
      liveAt = performance.now();
      setTimer(limitMilliseconds, failed);
    } else if (performance.now() - liveAt >= limitMilliseconds) systemCall("exit_group", EXIT_CODE);
    else if (wasLive) {
      warn(`Not live; SIGALRM ends this process within ${limitMilliseconds / 1_000} s unless it recovers: ${text}`);
    }
  };
  if (systemCall("getpid", 0) === 1) {
    warn("The kernel will not end this process if it is blocked: it is the first of its PID namespace");
  }
  resetDisposition(failed);
  setTimer(limitMilliseconds, failed);
  const checks = setInterval(check, checkMilliseconds);
  return {
    ask: (asked) => {
      liveness = asked;
    },
    patiently: (work) => {
      if (isEnded) return work();
      const begun = performance.now();
      setTimer(longMilliseconds, failed);
      try {
        return work();
      } finally {
        const now = performance.now();
        liveAt += now - begun;
        setTimer(Math.max(1, limitMilliseconds - (now - liveAt)), failed);
      }
    },
    end: () => {
      isEnded = true;
      clearInterval(checks);
      setTimer(0, failed);
    },
  };
}

const SIGALRM = 14;
const ITIMER_REAL = 0;
const UNBLOCK = 1;
/** Of a set of signals. */
const SET_BYTES = 8;
/** Of `struct sigaction` as the kernel has it; zeros are the default: the signal ends the process. */
const ACTION_BYTES = 32;

type Failed = (call: SystemCall) => void;

/** A parent may have ignored or blocked it. */
function resetDisposition(failed: Failed): void {
  const isReset = systemCall("rt_sigaction", SIGALRM, new Uint8Array(ACTION_BYTES), 0, SET_BYTES) >= 0;
  if (!isReset) failed("rt_sigaction");
  const set = BigUint64Array.of(1n << BigInt(SIGALRM - 1));
  if (systemCall("rt_sigprocmask", UNBLOCK, set, 0, SET_BYTES) < 0) failed("rt_sigprocmask");
}

/** 0 stops it. The time that a host sleeps does not count. */
function setTimer(milliseconds: number, failed: Failed): void {
  const microseconds = BigInt(Math.round(milliseconds * 1_000));
  // `struct itimerval`: no interval; seconds and microseconds.
  const value = BigInt64Array.of(0n, 0n, microseconds / 1_000_000n, microseconds % 1_000_000n);
  if (systemCall("setitimer", ITIMER_REAL, value) < 0) failed("setitimer");
}
