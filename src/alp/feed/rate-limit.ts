export interface Rate {
  readonly burst: number;
  readonly perSecond: number;
}

/** How often something may happen: at most `burst` times at once, and `perSecond` on average. */
export class RateLimit {
  private left: number;
  private countedAt: number;

  constructor(
    private readonly rate: Rate,
    /** Monotonic milliseconds. */
    private readonly elapsed: () => number,
  ) {
    this.left = rate.burst;
    this.countedAt = elapsed();
  }

  /** Whether it may happen once more now. */
  get hasLeft(): boolean {
    const now = this.elapsed();
    const { burst, perSecond } = this.rate;
    this.left = Math.min(burst, this.left + ((now - this.countedAt) / 1_000) * perSecond);
    this.countedAt = now;
    return this.left >= 1;
  }

  /** Returns whether it may happen once more now; if so, it counts. */
  take(): boolean {
    if (!this.hasLeft) return false;
    this.left -= 1;
    return true;
  }
}
