/**
 * The clock of a server, as the `Date` header of its responses tells it: for times that several hosts compare, whose own
 * clocks may be wrong. It costs no request.
 *
 * The header is cut to whole seconds and arrives late, so the server's time is never before it: of several responses the
 * one that promises the most is believed, until it is old. What passes in between is measured by a clock that nobody sets.
 * It stands still while the machine is suspended: if the clock of this host has jumped meanwhile, the server's time is lost
 * until the next response.
 */
const OLD_MILLISECONDS = 60_000;
/** A long time without a response that has the header. */
const OUTDATED_MILLISECONDS = 600_000;
/** Both clocks are read one after the other. */
const JUMP_MILLISECONDS = 1_000;

/** "lost": it was known before this machine was suspended, or its own clock was set. */
export type ServerTime = Date | "lost" | undefined;

export class ServerClock {
  private known: { readonly offset: number; readonly heardAt: number; readonly ahead: number } | undefined;

  /** `elapsed`: milliseconds that never go back. `wall`: those of the clock of this host, of which only jumps count. */
  constructor(
    private readonly elapsed: () => number = () => performance.now(),
    private readonly wall: () => number = () => Date.now(),
  ) {}

  /** Called as soon as a response is there. */
  hear(date: string | null | undefined): void {
    const time = date ? Date.parse(date) : Number.NaN;
    if (Number.isNaN(time)) return;
    const heardAt = this.elapsed();
    const offset = time - heardAt;
    const { known } = this;
    const isOld = known === undefined || this.isLost || heardAt - known.heardAt > OLD_MILLISECONDS;
    if (isOld || offset > known.offset) this.known = { offset, heardAt, ahead: this.wall() - heardAt };
  }

  /** At most as late as the server's own time, and rarely more than a second before it. `undefined`: not known. */
  now(): ServerTime {
    if (this.isLost) return "lost";
    return this.known && new Date(this.known.offset + this.elapsed());
  }

  /** Whether it is time to hear from the server again. */
  get isOutdated(): boolean {
    return this.known === undefined || this.isLost || this.elapsed() - this.known.heardAt > OUTDATED_MILLISECONDS;
  }

  private get isLost(): boolean {
    const jump = this.known && this.wall() - this.elapsed() - this.known.ahead;
    return jump !== undefined && Math.abs(jump) > JUMP_MILLISECONDS;
  }
}
