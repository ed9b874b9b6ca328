/**
 * Keeps a mistake from taking effect at once: what would remove a large share of all records is held, until several looks in
 * a row have agreed on it, or an administrator allows it. What is gone in truth, such as many nodes of a cluster that
 * was made smaller, goes through by itself. Pure, but for what it remembers between two looks.
 */

/** Fewer are never held, and neither is a smaller share. */
const FEWEST = 20;
const SHARE = 0.2;
/** So many looks must agree, and so far apart they count: time for a person who gets the alert. */
const LOOKS = 3;
export const BRAKE_INTERVAL_MILLISECONDS = 5 * 60_000;
const LONGEST_PAUSE = 3 * BRAKE_INTERVAL_MILLISECONDS;

/** "more than 20 %", for messages. */
export const LARGE_SHARE = `more than ${SHARE * 100} %`;

export function isLargeRemoval(count: number, total: number): boolean {
  return count >= FEWEST && count > total * SHARE;
}

/** How many records of a kind would be removed. */
export interface RemovedShare {
  /** For messages: `addresses`. */
  readonly what: string;
  readonly count: number;
  /** How many there are. */
  readonly total: number;
}

/** The shares that are too large. */
export function largeShares(shares: readonly RemovedShare[]): readonly RemovedShare[] {
  return shares.filter(({ count, total }) => isLargeRemoval(count, total));
}

export interface Removal {
  /** What would be removed, each by a name that another one of its kind never has. */
  readonly identities: readonly string[];
  /** How many there are. */
  readonly total: number;
  /** Other kinds that are removed as a consequence: all are held if too much of one kind goes. */
  readonly consequences?: readonly RemovedShare[];
  /** Monotonic milliseconds. */
  readonly now: number;
}

export class RemovalBrake {
  /** In how many looks in a row it was found. */
  private looks = new Map<string, number>();
  private counted = Number.NEGATIVE_INFINITY;
  private held: ReadonlySet<string> = new Set();

  /** What is held at the moment. */
  get count(): number {
    return this.held.size;
  }

  /** Whether the last look found anything: then the looks must go on, so that one that finds nothing counts, too. */
  get isRemembering(): boolean {
    return this.looks.size > 0;
  }

  /** Whether the last look found it. */
  wasFound(identity: string): boolean {
    return this.looks.has(identity);
  }

  look({ identities, total, consequences = [], now }: Removal): void {
    const pause = now - this.counted;
    const isCounted = pause >= BRAKE_INTERVAL_MILLISECONDS;
    if (isCounted) this.counted = now;
    // After a longer pause, for example of a standby, nobody knows what happened in between.
    const before = pause > LONGEST_PAUSE ? new Map<string, number>() : this.looks;
    this.looks = new Map(identities.map((each) => [each, (before.get(each) ?? 0) + (isCounted ? 1 : 0)]));
    const disputed = identities.filter((each) => (this.looks.get(each) ?? 0) < LOOKS);
    const isLarge = isLargeRemoval(identities.length, total) || largeShares(consequences).length > 0;
    this.held = new Set(isLarge ? disputed : []);
  }

  isHeld(identity: string): boolean {
    return this.held.has(identity);
  }
}
