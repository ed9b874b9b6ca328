/**
 * Bytes of a stream -> lines, of which none may be longer than the limit.
 *
 * A part of a line is copied into a buffer, however small the pieces are that it arrives in; a line that arrives whole is
 * not copied.
 */
const NEW_LINE = 10;
const FIRST_BYTES = 256;
/** A larger buffer is given back after the line. */
const MOST_KEPT_BYTES = 64 * 1024;

export class LineBuffer {
  private held = Buffer.alloc(FIRST_BYTES);
  private length = 0;

  /** Without the end of the line. */
  constructor(private readonly mostBytes: number) {}

  /** Calls `take` with each complete line until it returns `false`. Returns `false` if it did, or if a line is too long. */
  add(bytes: Uint8Array, take: (line: string) => boolean): boolean {
    for (let from = 0; from < bytes.length; ) {
      const end = bytes.indexOf(NEW_LINE, from);
      const piece = bytes.subarray(from, end === -1 ? bytes.length : end);
      if (this.length + piece.length > this.mostBytes) return false;
      if (end === -1) {
        this.hold(piece);
        return true;
      }
      if (!take(this.lineWith(piece))) return false;
      from = end + 1;
    }
    return true;
  }

  private lineWith(piece: Uint8Array): string {
    if (this.length === 0) return Buffer.from(piece.buffer, piece.byteOffset, piece.length).toString();
    this.hold(piece);
    const line = this.held.toString("utf8", 0, this.length);
    this.length = 0;
    if (this.held.length > MOST_KEPT_BYTES) this.held = Buffer.alloc(FIRST_BYTES);
    return line;
  }

  private hold(piece: Uint8Array): void {
    const length = this.length + piece.length;
    if (length > this.held.length) {
      const larger = Buffer.alloc(Math.max(length, Math.min(2 * this.held.length, this.mostBytes)));
      larger.set(this.held.subarray(0, this.length));
      this.held = larger;
    }
    this.held.set(piece, this.length);
    this.length = length;
  }
}
