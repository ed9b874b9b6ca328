/**
 * What a stream still has to send, and how much of it the other side will take
 * (RFC 9113, section 5.2). Pure: says which piece goes next, sends nothing.
 */
export interface Piece {
  readonly bytes: Uint8Array;
  readonly isLast: boolean;
}

export class Outgoing {
  private waiting: Uint8Array;
  private state: "open" | "ending" | "ended" = "open";

  constructor(
    private window: number,
    body: Uint8Array,
    more: "last" | "more to come",
  ) {
    this.waiting = body;
    if (more === "last") this.state = "ending";
  }

  get hasEnded(): boolean {
    return this.state === "ended";
  }

  /** May be negative where the other side has changed its mind. */
  widen(bytes: number): void {
    this.window += bytes;
  }

  /** The next piece of at most so many bytes, or nothing as long as nothing can be sent. */
  next(most: number): Piece | undefined {
    if (this.state === "ended") return undefined;
    const count = Math.max(0, Math.min(this.waiting.length, this.window, most));
    const isLast = count === this.waiting.length && this.state === "ending";
    if (count === 0 && !isLast) return undefined;
    const bytes = this.waiting.subarray(0, count);
    this.waiting = this.waiting.subarray(count);
    this.window -= count;
    if (isLast) this.state = "ended";
    return { bytes, isLast };
  }
}
