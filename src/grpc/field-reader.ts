/**
 * Reads the fields of a protobuf message one after the other, without copying and without numbers of 64 bits: for messages
 * that arrive often and of which only few fields matter. `Fields` (protobuf.ts) is for all others.
 */
const VARINT = 0;
const FIXED64 = 1;
const DELIMITED = 2;
const FIXED32 = 5;
/** A varint of 64 bits has at most ten bytes. */
const MOST_BYTES = 10;

export class FieldReader {
  /** Of a field that is a number; exact up to 2^53. */
  number = 0;
  private start = 0;
  private stop = 0;

  private constructor(
    private readonly source: Buffer,
    private at: number,
    private readonly end: number,
  ) {}

  static of(message: Uint8Array): FieldReader {
    // Received messages are of this kind; access to the memory of any other is slow.
    const source =
      message instanceof Buffer ? message : Buffer.from(message.buffer, message.byteOffset, message.length);
    return new FieldReader(source, 0, source.length);
  }

  /** Moves on to the next field, whose number in the message it returns; 0 at the end. Throws `RangeError` if it is cut off. */
  next(): number {
    if (this.at >= this.end) return 0;
    const tag = this.varint();
    this.start = this.at;
    this.stop = this.at;
    switch (tag % 8) {
      case VARINT:
        this.number = this.varint();
        break;
      case DELIMITED: {
        const length = this.varint();
        this.start = this.at;
        this.skip(length);
        this.stop = this.at;
        break;
      }
      case FIXED64:
        this.skip(8);
        break;
      case FIXED32:
        this.skip(4);
        break;
      default:
        throw new RangeError(`protobuf: wire type ${tag % 8} is unknown`);
    }
    return Math.floor(tag / 8);
  }

  /** The current field as text; empty if it is not text. */
  text(): string {
    return this.source.toString("utf8", this.start, this.stop);
  }

  /** The current field as a message. */
  message(): FieldReader {
    return new FieldReader(this.source, this.start, this.stop);
  }

  private varint(): number {
    let value = 0;
    let factor = 1;
    for (let count = 0; count < MOST_BYTES && this.at < this.end; count += 1) {
      const byte = this.source[this.at++] ?? 0;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
      factor *= 128;
    }
    throw new RangeError("protobuf: a number is cut off");
  }

  private skip(count: number): void {
    this.at += count;
    if (this.at > this.end) throw new RangeError("protobuf: a field is cut off");
  }
}
