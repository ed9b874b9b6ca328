/** Messages on a gRPC stream: each is prefixed with five bytes that include its length. */

/** A byte for compression, which is not supported, and four for the length. */
const PREFIX_BYTES = 5;

export function encodeMessage(message: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(PREFIX_BYTES + message.length);
  const { length } = message;
  bytes[1] = length >>> 24;
  bytes[2] = length >>> 16;
  bytes[3] = length >>> 8;
  bytes[4] = length;
  bytes.set(message, PREFIX_BYTES);
  return bytes;
}

/** Splits the received bytes into messages. */
export class MessageReader {
  private pieces: Uint8Array[] = [];
  private size = 0;
  private wanted = PREFIX_BYTES;

  /** `mostBytes` of a message with its prefix; a longer one throws `tooLarge()`. */
  constructor(
    private readonly mostBytes: number,
    private readonly tooLarge: () => Error,
  ) {}

  read(piece: Uint8Array): readonly Uint8Array[] {
    const messages: Uint8Array[] = [];
    this.pieces.push(piece);
    this.size += piece.length;
    while (this.size >= this.wanted) {
      const bytes = this.pieces.length === 1 ? (this.pieces[0] ?? piece) : Buffer.concat(this.pieces);
      const end = PREFIX_BYTES + lengthIn(bytes);
      if (end > this.mostBytes) throw this.tooLarge();
      const isWhole = bytes.length >= end;
      if (isWhole) messages.push(bytes.subarray(PREFIX_BYTES, end));
      this.pieces = [isWhole ? bytes.subarray(end) : bytes];
      this.size = bytes.length - (isWhole ? end : 0);
      this.wanted = isWhole ? PREFIX_BYTES : end;
    }
    return messages;
  }
}

/** Without a `DataView`: the runtime is slow to give access to the memory of a small array. */
function lengthIn(prefix: Uint8Array): number {
  return (((prefix[1] ?? 0) << 24) | ((prefix[2] ?? 0) << 16) | ((prefix[3] ?? 0) << 8) | (prefix[4] ?? 0)) >>> 0;
}
