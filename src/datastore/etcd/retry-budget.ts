/**
 * Time limits of one operation with its retries: a limit for each attempt, short
 * at first so that a frozen member costs little, and a limit for all attempts.
 */
export interface Limits {
  readonly firstAttemptMilliseconds: number;
  readonly longestAttemptMilliseconds: number;
  /** All attempts of an operation, while the failure may pass (an election, a slow disk). */
  readonly wholeMilliseconds: number;
  /** All attempts, while no endpoint accepts a connection: long enough for a restart. */
  readonly briefMilliseconds: number;
}

export const LIMITS: Limits = {
  firstAttemptMilliseconds: 1_000,
  longestAttemptMilliseconds: 5_000,
  wholeMilliseconds: 15_000,
  briefMilliseconds: 2_000,
};

const FIRST_PAUSE_MILLISECONDS = 50;
const LONGEST_PAUSE_MILLISECONDS = 500;

export class RetryBudget {
  private wholeLimit: AbortSignal | undefined;
  private briefLimit: AbortSignal | undefined;
  private attemptMilliseconds: number;
  private pauseMilliseconds = FIRST_PAUSE_MILLISECONDS;

  constructor(
    private readonly limits: Limits,
    private readonly stop: AbortSignal,
  ) {
    this.attemptMilliseconds = limits.firstAttemptMilliseconds;
  }

  /** The limit of the next attempt, longer than the one before. */
  nextAttempt(): AbortSignal {
    const limit = AbortSignal.timeout(this.attemptMilliseconds);
    this.attemptMilliseconds = Math.min(this.attemptMilliseconds * 2, this.limits.longestAttemptMilliseconds);
    return AbortSignal.any([limit, this.wholeLimit ?? this.stop]);
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
    this.wholeLimit ??= AbortSignal.any([AbortSignal.timeout(this.limits.wholeMilliseconds), this.stop]);
    return this.wholeLimit;
  }

  private get brief(): AbortSignal {
    this.briefLimit ??= AbortSignal.timeout(this.limits.briefMilliseconds);
    return this.briefLimit;
  }

  /** Ends early when the operation is stopped. */
  async pause(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = () => resolve();
    const timer = setTimeout(wake, this.pauseMilliseconds);
    this.stop.addEventListener("abort", wake, { once: true });
    await promise;
    clearTimeout(timer);
    this.stop.removeEventListener("abort", wake);
    this.pauseMilliseconds = Math.min(this.pauseMilliseconds * 2, LONGEST_PAUSE_MILLISECONDS);
  }
}
