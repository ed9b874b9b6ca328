/** Wakes what waits on its signal: `wait(limit, wakeup.signal)`. A notification before the wait ends it at once. */
export class Wakeup {
  private controller = new AbortController();

  get signal(): AbortSignal {
    return this.controller.signal;
  }

  get isNotified(): boolean {
    return this.controller.signal.aborted;
  }

  notify(): void {
    this.controller.abort();
  }

  reset(): void {
    if (this.isNotified) this.controller = new AbortController();
  }
}
