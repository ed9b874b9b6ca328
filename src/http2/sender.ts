/**
 * What goes out on a connection: frames, put together into one piece for the
 * wire, and the bodies of streams as far as the other side's windows let them.
 */
import { DATA, END_STREAM, encodeFrame, LARGEST_PAYLOAD, numberBytes, WINDOW_UPDATE } from "./frames.ts";
import { Outgoing } from "./outgoing.ts";

export interface Wire {
  write(bytes: Uint8Array): void;
  close(): void;
}

export const DEFAULT_WINDOW = 65_535;

export class Sender {
  private unsent: Uint8Array[] = [];
  private window = DEFAULT_WINDOW;
  private windowOfNewStreams = DEFAULT_WINDOW;

  constructor(private readonly wire: Wire) {}

  putBytes(bytes: Uint8Array): void {
    this.unsent.push(bytes);
  }

  put(type: number, stream: number, payload: Uint8Array, flags = 0): void {
    this.unsent.push(encodeFrame({ type, flags, stream, payload }));
  }

  /** Lets the other side send as much more. */
  putWindow(stream: number, bytes: number): void {
    this.put(WINDOW_UPDATE, stream, numberBytes(bytes));
  }

  /** All that was put goes at once: each piece is a packet, and wakes the other side. */
  flush(): void {
    if (this.unsent.length === 0) return;
    const bytes = Buffer.concat(this.unsent);
    this.unsent = [];
    this.wire.write(bytes);
  }

  newBody(body: Uint8Array, more: "last" | "more to come"): Outgoing {
    return new Outgoing(this.windowOfNewStreams, body, more);
  }

  /** As much of a body as may go now. */
  pump(stream: number, outgoing: Outgoing): void {
    for (;;) {
      const piece = outgoing.next(Math.min(this.window, LARGEST_PAYLOAD));
      if (piece === undefined) return;
      this.window -= piece.bytes.length;
      this.put(DATA, stream, piece.bytes, piece.isLast ? END_STREAM : 0);
    }
  }

  /** The window of the connection, which all streams share. */
  widen(bytes: number): void {
    this.window += bytes;
  }

  /** Counts for the streams that are open, too. */
  rewindow(window: number, open: Iterable<Outgoing>): void {
    for (const outgoing of open) outgoing.widen(window - this.windowOfNewStreams);
    this.windowOfNewStreams = window;
  }
}
