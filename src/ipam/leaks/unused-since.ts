/** How long things have been unused, at every look. Pure, but for what it remembers between two looks. */
export interface LookTime {
  /** Monotonic milliseconds. */
  readonly now: number;
  readonly graceMilliseconds: number;
}

export class UnusedSince {
  private since = new Map<string, number>();
  private last: number | undefined;

  /**
   * The age of each of these, in milliseconds; what is missing here begins again when it returns. After a longer pause than
   * the usual half of the grace period, for example of a standby, everything begins again: nobody knows what happened in
   * between.
   */
  look(identities: readonly string[], time: LookTime): readonly number[] {
    const { now } = time;
    const before = isContinuous(this.last, time) ? this.since : new Map<string, number>();
    this.last = now;
    this.since = new Map(identities.map((identity) => [identity, before.get(identity) ?? now]));
    return identities.map((identity) => now - (this.since.get(identity) ?? now));
  }
}

/** Whether nothing can have happened unseen since the last look. */
export function isContinuous(last: number | undefined, { now, graceMilliseconds }: LookTime): boolean {
  return last !== undefined && now - last <= longestPause(graceMilliseconds);
}

/** A look takes time too. */
function longestPause(graceMilliseconds: number): number {
  return graceMilliseconds / 2 + Math.max(graceMilliseconds / 10, 10_000);
}
