import { SYSTEM_TIMERS, type Timeout, type Timers } from "../timers.ts";

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
  private attemptLimit: Timeout | undefined;
  private pauseMilliseconds = FIRST_PAUSE_MILLISECONDS;

  constructor(
    private readonly limits: Limits,
    /** Milliseconds that never go back. */
    private readonly elapsed: () => number,
    private readonly stop: AbortSignal | undefined,
    private readonly timers: Timers = SYSTEM_TIMERS,
    /** From 0 up to 1: clients that were refused at the same moment do not come back at the same moment. */
    private readonly random: () => number = Math.random,
  ) {}

  nextAttempt(): AbortSignal {
    this.startedAt ??= this.elapsed();
    const left = this.limits.wholeMilliseconds - this.spent;
    this.end();
    this.attemptLimit = this.timers.timeout(Math.max(1, Math.min(this.limits.attemptMilliseconds, left)));
    const { signal } = this.attemptLimit;
    return this.stop === undefined ? signal : AbortSignal.any([signal, this.stop]);
  }

  /** Whether time is left for another attempt after a pause of that length. */
  allow(cure: "moment" | "wait", pauseMilliseconds = 0): boolean {
    if (this.stop?.aborted) return false;
    const limit = cure === "wait" ? this.limits.wholeMilliseconds : this.limits.briefMilliseconds;
    return this.spent + pauseMilliseconds < limit;
  }

  /** The attempt is over: nothing of its limit is left. */
  end(): void {
    this.attemptLimit?.cancel();
  }

  /** As long as the server asks for, or a little longer; else up to a length that grows. Ends early when the request is stopped. */
  async pause(asked?: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = () => resolve();
    const jitter = this.random() / 2;
    const milliseconds = asked === undefined ? this.pauseMilliseconds * (0.5 + jitter) : asked * (1 + jitter);
    const cancel = this.timers.after(milliseconds, wake);
    this.stop?.addEventListener("abort", wake, { once: true });
    await promise;
    cancel();
    this.stop?.removeEventListener("abort", wake);
    this.pauseMilliseconds = Math.min(this.pauseMilliseconds * 2, LONGEST_PAUSE_MILLISECONDS);
  }

  private get spent(): number {
    return this.startedAt === undefined ? 0 : this.elapsed() - this.startedAt;
  }
}
