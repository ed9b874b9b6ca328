/**
 * As much of the protobuf wire format as our messages need: varints and
 * length-delimited fields. 64-bit numbers are bigint here and text outside.
 */
const VARINT = 0;
const FIXED64 = 1;
const DELIMITED = 2;
const FIXED32 = 5;

/** One field, with its number; several make a message. */
export function delimited(field: number, content: Uint8Array | string): Uint8Array {
  const length = typeof content === "string" ? Buffer.byteLength(content) : content.length;
  const tag = (field << 3) | DELIMITED;
  const bytes = Buffer.allocUnsafe(sizeOf(tag) + sizeOf(length) + length);
  const at = putNumber(bytes, putNumber(bytes, 0, tag), length);
  if (typeof content === "string") bytes.write(content, at);
  else bytes.set(content, at);
  return bytes;
}

export function varint(field: number, value: bigint): Uint8Array {
  const bytes = Buffer.allocUnsafe(MOST_BYTES * 2);
  let at = putNumber(bytes, 0, (field << 3) | VARINT);
  let left = BigInt.asUintN(64, value);
  for (; left > LARGEST_NUMBER; left >>= 7n) bytes[at++] = Number(left & 0x7fn) | 0x80;
  return bytes.subarray(0, putNumber(bytes, at, Number(left)));
}

export function message(...fields: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(fields);
}

/** Of a number of 64 bits, seven in each. */
const MOST_BYTES = 10;
/** What bitwise operations can hold. */
const LARGEST_NUMBER = 0x7fff_ffffn;

function sizeOf(value: number): number {
  let size = 1;
  for (let left = value >>> 7; left > 0; left >>>= 7) size += 1;
  return size;
}

/** Returns where the next byte goes. */
function putNumber(bytes: Uint8Array, at: number, value: number): number {
  let next = at;
  let left = value;
  for (; left > 0x7f; left >>>= 7) bytes[next++] = (left & 0x7f) | 0x80;
  bytes[next++] = left;
  return next;
}

/** A message taken apart; absent fields read as zero, empty or no elements, as protobuf means them. */
export class Fields {
  private readonly numbers = new Map<number, bigint>();
  private readonly contents = new Map<number, Uint8Array[]>();

  constructor(bytes: Uint8Array) {
    const reader = new Reader(bytes);
    while (!reader.isAtEnd) {
      const tag = Number(reader.varint());
      this.take(tag >> 3, tag & 7, reader);
    }
  }

  number(field: number): bigint {
    return this.numbers.get(field) ?? 0n;
  }

  /** Signed 64-bit numbers as text. */
  numberText(field: number): string {
    return String(BigInt.asIntN(64, this.number(field)));
  }

  flag(field: number): boolean {
    return this.number(field) !== 0n;
  }

  text(field: number): string {
    return Buffer.from(this.contents.get(field)?.at(-1) ?? []).toString();
  }

  one(field: number): Fields | undefined {
    const content = this.contents.get(field)?.at(-1);
    return content && new Fields(content);
  }

  all(field: number): readonly Fields[] {
    return (this.contents.get(field) ?? []).map((content) => new Fields(content));
  }

  private take(field: number, type: number, reader: Reader): void {
    switch (type) {
      case VARINT:
        this.numbers.set(field, reader.varint());
        return;
      case DELIMITED: {
        const known = this.contents.get(field);
        const content = reader.bytes(Number(reader.varint()));
        if (known) known.push(content);
        else this.contents.set(field, [content]);
        return;
      }
      case FIXED64:
        reader.bytes(8);
        return;
      case FIXED32:
        reader.bytes(4);
        return;
      default:
        throw new RangeError(`protobuf: wire type ${type} is unknown`);
    }
  }
}

class Reader {
  private position = 0;

  constructor(private readonly source: Uint8Array) {}

  get isAtEnd(): boolean {
    return this.position >= this.source.length;
  }

  varint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.source[this.position++];
      if (byte === undefined) break;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw new RangeError("protobuf: a number is cut off");
  }

  bytes(length: number): Uint8Array {
    const end = this.position + length;
    if (end > this.source.length) throw new RangeError("protobuf: a field is cut off");
    const content = this.source.subarray(this.position, end);
    this.position = end;
    return content;
  }
}
