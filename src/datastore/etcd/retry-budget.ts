/**
 * Time limits of one operation with its retries: a limit for each attempt, short
 * at first so that a frozen member costs little, and a limit for all attempts.
 */
import { SYSTEM_TIMERS, type Timeout, type Timers } from "../../timers.ts";

export interface Limits {
  readonly firstAttemptMilliseconds: number;
  readonly longestAttemptMilliseconds: number;
  /** All attempts of an operation, while the failure may pass (an election, a slow disk). */
  readonly wholeMilliseconds: number;
  /** All attempts, while no endpoint accepts a connection: long enough for a restart. */
  readonly briefMilliseconds: number;
  /** When an operation without a response is worth a word to a person who waits for it. */
  readonly noticeMilliseconds: number;
}

export const LIMITS: Limits = {
  firstAttemptMilliseconds: 1_000,
  longestAttemptMilliseconds: 5_000,
  wholeMilliseconds: 15_000,
  briefMilliseconds: 2_000,
  noticeMilliseconds: 2_000,
};

const FIRST_PAUSE_MILLISECONDS = 50;
const LONGEST_PAUSE_MILLISECONDS = 500;

export class RetryBudget {
  private attemptLimit: Timeout | undefined;
  private wholeTimeout: Timeout | undefined;
  private wholeLimit: AbortSignal | undefined;
  private briefLimit: Timeout | undefined;
  private cancelNotice: (() => void) | undefined;
  private attemptMilliseconds: number;
  private pauseMilliseconds = FIRST_PAUSE_MILLISECONDS;

  constructor(
    private readonly limits: Limits,
    private readonly stop: AbortSignal,
    private readonly timers: Timers = SYSTEM_TIMERS,
  ) {
    this.attemptMilliseconds = limits.firstAttemptMilliseconds;
  }

  /** The limit of the next attempt, longer than the one before. */
  nextAttempt(): AbortSignal {
    this.attemptLimit?.cancel();
    this.attemptLimit = this.timers.timeout(this.attemptMilliseconds);
    this.attemptMilliseconds = Math.min(this.attemptMilliseconds * 2, this.limits.longestAttemptMilliseconds);
    return AbortSignal.any([this.attemptLimit.signal, this.wholeLimit ?? this.stop]);
  }

  /** Whether time is left to retry after a failure with this cure. */
  allow(cure: "moment" | "wait"): boolean {
    return !this.areExhausted && (cure === "wait" || !this.brief.aborted);
  }

  get areExhausted(): boolean {
    return this.whole.aborted;
  }

  /** The longer limits start at the first failure: an operation that succeeds at once needs no timers for them. */
  private get whole(): AbortSignal {
    this.wholeTimeout ??= this.timers.timeout(this.limits.wholeMilliseconds);
    this.wholeLimit ??= AbortSignal.any([this.wholeTimeout.signal, this.stop]);
    return this.wholeLimit;
  }

  private get brief(): AbortSignal {
    this.briefLimit ??= this.timers.timeout(this.limits.briefMilliseconds);
    return this.briefLimit.signal;
  }

  /**
   * After the first attempt without a response: calls `tell` once, with the time that is left for retries, if the
   * operation is not over by then.
   */
  noticeSilence(tell: (leftMilliseconds: number) => void): void {
    const { noticeMilliseconds, firstAttemptMilliseconds, wholeMilliseconds } = this.limits;
    const delay = Math.max(0, noticeMilliseconds - firstAttemptMilliseconds);
    this.cancelNotice ??= this.timers.after(delay, () => tell(wholeMilliseconds - delay));
  }

  /** The operation is over: nothing of its limits is left. */
  end(): void {
    this.cancelNotice?.();
    for (const limit of [this.attemptLimit, this.wholeTimeout, this.briefLimit]) limit?.cancel();
  }

  /** Ends early when the operation is stopped. */
  async pause(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = () => resolve();
    const cancel = this.timers.after(this.pauseMilliseconds, wake);
    this.stop.addEventListener("abort", wake, { once: true });
    await promise;
    cancel();
    this.stop.removeEventListener("abort", wake);
    this.pauseMilliseconds = Math.min(this.pauseMilliseconds * 2, LONGEST_PAUSE_MILLISECONDS);
  }
}
