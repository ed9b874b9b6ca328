/** Bytes of a stream -> lines, of which none may be longer than the limit. */

const NEW_LINE = 10;
const FIRST_BYTES = 256;

export class LineBuffer {
  private held = new Uint8Array(FIRST_BYTES);
  private length = 0;

  /** Without the end of the line. */
  constructor(private readonly mostBytes: number) {}

  /** Calls `take` with each complete line until it returns `false`. Returns `false` if it did, or if a line is too long. */
  add(bytes: Uint8Array, take: (line: string) => boolean): boolean {
    for (let from = 0; from < bytes.length; ) {
      const end = bytes.indexOf(NEW_LINE, from);
      if (!this.hold(bytes.subarray(from, end === -1 ? bytes.length : end))) return false;
      if (end === -1) return true;
      const line = new TextDecoder().decode(this.held.subarray(0, this.length));
      this.length = 0;
      if (!take(line)) return false;
      from = end + 1;
    }
    return true;
  }

  private hold(bytes: Uint8Array): boolean {
    const length = this.length + bytes.length;
    if (length > this.mostBytes) return false;
    if (length > this.held.length) {
      const larger = new Uint8Array(Math.max(length, Math.min(2 * this.held.length, this.mostBytes)));
      larger.set(this.held.subarray(0, this.length));
      this.held = larger;
    }
    this.held.set(bytes, this.length);
    this.length = length;
    return true;
  }
}
