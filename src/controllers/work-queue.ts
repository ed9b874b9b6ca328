/**
 * Keys that wait for work. A key waits once, however often it is added, and is worked on once at a time; after a failure
 * it waits longer each time. A worker therefore always acts on the latest state of a key.
 */
export interface QueueMeans {
  /** Milliseconds that never go back. */
  readonly elapsed: () => number;
  /** Resolves early if the signal is aborted. */
  readonly wait: (milliseconds: number, signal: AbortSignal) => Promise<void>;
}

const FIRST_PAUSE_MILLISECONDS = 50;
const LONGEST_PAUSE_MILLISECONDS = 60_000;

export class WorkQueue {
  /** In the order in which they were added. */
  private readonly ready = new Set<string>();
  /** When a key that failed is ready again. */
  private readonly later = new Map<string, number>();
  /** The earliest of these times. */
  private soonest = Number.POSITIVE_INFINITY;
  private readonly failures = new Map<string, number>();
  private news = new AbortController();

  constructor(private readonly means: QueueMeans) {}

  /** How many keys wait. */
  get depth(): number {
    return this.ready.size + this.later.size;
  }

  /** No key waits, except after a failure. */
  get isWorkedOff(): boolean {
    return this.ready.size === 0;
  }

  /** How many keys failed the last time. */
  get failing(): number {
    return this.failures.size;
  }

  /** A key that failed keeps its pause: a flood of events does not turn into a flood of attempts. */
  add(key: string): void {
    if (this.later.has(key) || this.ready.has(key)) return;
    this.ready.add(key);
    this.news.abort();
  }

  /** The next key; `undefined` once the signal is aborted. */
  async take(signal: AbortSignal): Promise<string | undefined> {
    while (!signal.aborted) {
      this.makeReady();
      for (const key of this.ready) {
        this.ready.delete(key);
        return key;
      }
      this.news = new AbortController();
      const pause = Math.max(1, Math.min(this.soonest - this.means.elapsed(), LONGEST_PAUSE_MILLISECONDS));
      await this.means.wait(pause, AbortSignal.any([signal, this.news.signal]));
    }
    return undefined;
  }

  succeeded(key: string): void {
    this.failures.delete(key);
  }

  /** Returns the pause, in milliseconds. */
  failed(key: string): number {
    const before = this.failures.get(key) ?? 0;
    this.failures.set(key, before + 1);
    const pause = Math.min(FIRST_PAUSE_MILLISECONDS * 2 ** before, LONGEST_PAUSE_MILLISECONDS);
    this.ready.delete(key);
    const time = this.means.elapsed() + pause;
    this.later.set(key, time);
    this.soonest = Math.min(this.soonest, time);
    return pause;
  }

  private makeReady(): void {
    const now = this.means.elapsed();
    if (now < this.soonest) return;
    this.soonest = Number.POSITIVE_INFINITY;
    for (const [key, time] of this.later) {
      if (time > now) this.soonest = Math.min(this.soonest, time);
      else {
        this.later.delete(key);
        this.ready.add(key);
      }
    }
  }
}
