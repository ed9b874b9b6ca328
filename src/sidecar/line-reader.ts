/** Splits received bytes into lines. */
const NEWLINE = 0x0a;

export class LineReader {
  private pieces: Uint8Array[] = [];
  private size = 0;

  /** A longer line throws `RangeError`. */
  constructor(private readonly mostBytes: number) {}

  read(received: Uint8Array): readonly string[] {
    const lines: string[] = [];
    let begin = 0;
    for (let end = received.indexOf(NEWLINE); end >= 0; end = received.indexOf(NEWLINE, begin)) {
      this.keep(received.subarray(begin, end));
      lines.push(Buffer.concat(this.pieces).toString());
      this.pieces = [];
      this.size = 0;
      begin = end + 1;
    }
    // The bytes are only valid until this function returns.
    if (begin < received.length) this.keep(received.slice(begin));
    return lines;
  }

  private keep(piece: Uint8Array): void {
    this.size += piece.length;
    if (this.size > this.mostBytes) throw new RangeError(`a line is longer than ${this.mostBytes} bytes`);
    this.pieces.push(piece);
  }
}
