/** The longest time that a timer takes, 24 days: for waiting until the bell rings. */
export const LONGEST_MILLISECONDS = 2 ** 31 - 1;

/** Wakes the one who waits. */
export class Bell {
  private controller = new AbortController();

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  get isRung(): boolean {
    return this.controller.signal.aborted;
  }

  ring(): void {
    this.controller.abort();
  }

  reset(): void {
    if (this.isRung) this.controller = new AbortController();
  }
}
