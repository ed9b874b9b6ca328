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
