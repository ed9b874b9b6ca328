/**
 * Detects commits, also those of other processes. SQLite sends no
 * notifications, so the counter is polled (about 10 microseconds each time):
 * often after a change, less and less often while nothing changes. All watches
 * of a connection share one timer, which runs only while one of them waits.
 */
const FIRST_PAUSE_MILLISECONDS = 2;
const LONGEST_PAUSE_MILLISECONDS = 100;
/** After so many of them without a change a watch goes on too, and says that it is still there: about 20 seconds. */
const MOST_LOOKS = 200;

export class ChangePoll {
  private readonly waiting = new Set<() => void>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private pause = FIRST_PAUSE_MILLISECONDS;
  private looks = 0;

  constructor(private readonly currentRevision: () => bigint) {}

  /** Resolves when the revision differs from the given one, after a while, or when the signal fires. */
  async changedFrom(revision: bigint, stop: AbortSignal): Promise<void> {
    if (stop.aborted || !this.isStill(revision)) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const wake = () => resolve();
    this.waiting.add(wake);
    stop.addEventListener("abort", wake, { once: true });
    this.schedule(revision);
    await promise;
    stop.removeEventListener("abort", wake);
    this.waiting.delete(wake);
    if (this.waiting.size === 0) this.cancel();
  }

  /** Polls immediately, because this connection itself has written. */
  lookNow(): void {
    if (this.waiting.size > 0) this.wakeAll();
  }

  private schedule(seen: bigint): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.looks += 1;
      if (this.looks >= MOST_LOOKS || !this.isStill(seen)) return this.wakeAll();
      this.pause = Math.min(this.pause * 2, LONGEST_PAUSE_MILLISECONDS);
      this.schedule(seen);
    }, this.pause);
  }

  /** A failure counts as a change: the watch then runs into it and reports it. */
  private isStill(seen: bigint): boolean {
    try {
      return this.currentRevision() === seen;
    } catch {
      return false;
    }
  }

  private wakeAll(): void {
    this.looks = 0;
    this.pause = FIRST_PAUSE_MILLISECONDS;
    this.cancel();
    for (const wake of this.waiting) wake();
  }

  private cancel(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }
}
