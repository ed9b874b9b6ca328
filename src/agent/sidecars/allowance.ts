/** How often something may happen: at most `burst` times at once, and `perSecond` on average. */
export class Allowance {
  private left: number;
  private countedAt: number;

  constructor(
    private readonly limits: { readonly burst: number; readonly perSecond: number },
    /** Monotonic milliseconds. */
    private readonly elapsed: () => number,
  ) {
    this.left = limits.burst;
    this.countedAt = elapsed();
  }

  /** Returns whether it may happen once more now. */
  take(): boolean {
    const now = this.elapsed();
    const { burst, perSecond } = this.limits;
    this.left = Math.min(burst, this.left + ((now - this.countedAt) / 1_000) * perSecond);
    this.countedAt = now;
    if (this.left < 1) return false;
    this.left -= 1;
    return true;
  }
}
