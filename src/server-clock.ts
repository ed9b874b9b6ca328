/**
 * The clock of a server, as the `Date` header of its responses tells it: for times that several hosts compare, whose own
 * clocks may be wrong. It costs no request.
 *
 * The header is cut to whole seconds and arrives late, so the server's time is never before it: of several responses the
 * one that promises the most is believed, until it is old. What passes in between is measured by a clock that nobody sets.
 */
const OLD_MILLISECONDS = 60_000;
/** A long time without a response that has the header. */
const OUTDATED_MILLISECONDS = 600_000;

export class ServerClock {
  private known: { readonly offset: number; readonly heardAt: number } | undefined;

  /** `elapsed`: milliseconds that never go back. */
  constructor(private readonly elapsed: () => number = () => performance.now()) {}

  /** Called as soon as a response is there. */
  hear(date: string | null | undefined): void {
    const time = date ? Date.parse(date) : Number.NaN;
    if (Number.isNaN(time)) return;
    const heardAt = this.elapsed();
    const offset = time - heardAt;
    const { known } = this;
    if (known === undefined || offset > known.offset || heardAt - known.heardAt > OLD_MILLISECONDS) {
      this.known = { offset, heardAt };
    }
  }

  /** At most as late as the server's own time, and rarely more than a second before it. `undefined`: not known. */
  now(): Date | undefined {
    return this.known && new Date(this.known.offset + this.elapsed());
  }

  /** Whether it is time to hear from the server again. */
  get isOutdated(): boolean {
    return this.known === undefined || this.elapsed() - this.known.heardAt > OUTDATED_MILLISECONDS;
  }
}
