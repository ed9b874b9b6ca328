/** The clock of a replica, and how long it waits between attempts. */
import { after } from "../../timers.ts";

export interface Clock {
  /** Milliseconds that never go back: otherwise a clock that is set back keeps a quiet watch from being renewed. */
  now(): number;
  /** Ends early, without an error, when the signal fires. */
  wait(milliseconds: number, signal: AbortSignal): Promise<void>;
}

export const SYSTEM_CLOCK: Clock = {
  now: () => performance.now(),
  wait: async (milliseconds, signal) => {
    if (signal.aborted) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = () => resolve();
    const cancel = after(milliseconds, wake);
    signal.addEventListener("abort", wake, { once: true });
    await promise;
    cancel();
    signal.removeEventListener("abort", wake);
  },
};

/** So many milliseconds for each of those who list and watch the same: an API server responds to some thousand requests a second. */
const MILLISECONDS_PER_PEER = 20;
const LONGEST_SPREAD_MILLISECONDS = 60_000;
/** What a watch costs, compared with a list. */
const SHARE_OF_A_WATCH = 1 / 20;

/** The time over which that many replicas spread what they all have to do at once. Pure. */
export function spreadOver(peers: number, what: "lists" | "watches"): number {
  const lists = Math.min(peers * MILLISECONDS_PER_PEER, LONGEST_SPREAD_MILLISECONDS);
  return what === "lists" ? lists : lists * SHARE_OF_A_WATCH;
}

export interface BackoffLimits {
  readonly firstPauseMilliseconds: number;
  readonly longestPauseMilliseconds: number;
}

/** Pauses that double up to a limit. Each is chosen at random from its upper half, so that many replicas do not retry at once. */
export class Backoff {
  private pause: number;

  constructor(
    private readonly limits: BackoffLimits,
    private readonly random: () => number,
  ) {
    this.pause = limits.firstPauseMilliseconds;
  }

  /** The pause after a failure; it is reset only after a time without failures as long as the longest pause. */
  next(wellForMilliseconds: number): number {
    const { firstPauseMilliseconds, longestPauseMilliseconds } = this.limits;
    if (wellForMilliseconds >= longestPauseMilliseconds) this.pause = firstPauseMilliseconds;
    const { pause } = this;
    this.pause = Math.min(pause * 2, longestPauseMilliseconds);
    return (pause * (1 + this.random())) / 2;
  }
}
