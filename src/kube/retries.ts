/** Time limits of one request with its retries. */
export interface Limits {
  readonly attemptMilliseconds: number;
  /** All attempts, while the failure may pass. */
  readonly wholeMilliseconds: number;
  /** All attempts, while no connection is accepted: long enough for a restart on the same host. */
  readonly briefMilliseconds: number;
}

export const LIMITS: Limits = { attemptMilliseconds: 5_000, wholeMilliseconds: 15_000, briefMilliseconds: 2_000 };

const FIRST_PAUSE_MILLISECONDS = 50;
const LONGEST_PAUSE_MILLISECONDS = 500;

export class Retries {
  private startedAt: number | undefined;
  private pauseMilliseconds = FIRST_PAUSE_MILLISECONDS;

  constructor(
    private readonly limits: Limits,
    /** Milliseconds that never go back. */
    private readonly elapsed: () => number,
    private readonly stop: AbortSignal | undefined,
  ) {}

  nextAttempt(): AbortSignal {
    this.startedAt ??= this.elapsed();
    const left = this.limits.wholeMilliseconds - this.spent;
    const limit = AbortSignal.timeout(Math.max(1, Math.min(this.limits.attemptMilliseconds, left)));
    return this.stop === undefined ? limit : AbortSignal.any([limit, this.stop]);
  }

  /** Whether time is left for another attempt after a pause of that length. */
  allow(cure: "moment" | "wait", pauseMilliseconds = 0): boolean {
    if (this.stop?.aborted) return false;
    const limit = cure === "wait" ? this.limits.wholeMilliseconds : this.limits.briefMilliseconds;
    return this.spent + pauseMilliseconds < limit;
  }

  /** Ends early when the request is stopped. */
  async pause(milliseconds?: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = () => resolve();
    const timer = setTimeout(wake, milliseconds ?? this.pauseMilliseconds);
    this.stop?.addEventListener("abort", wake, { once: true });
    await promise;
    clearTimeout(timer);
    this.stop?.removeEventListener("abort", wake);
    this.pauseMilliseconds = Math.min(this.pauseMilliseconds * 2, LONGEST_PAUSE_MILLISECONDS);
  }

  private get spent(): number {
    return this.startedAt === undefined ? 0 : this.elapsed() - this.startedAt;
  }
}
