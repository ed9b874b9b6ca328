/**
 * As much of the protobuf wire format as etcd's messages need: varints and
 * length-delimited fields. 64-bit numbers are bigint here and text outside.
 */
const VARINT = 0;
const FIXED64 = 1;
const DELIMITED = 2;
const FIXED32 = 5;

/** One field, with its number; several make a message. */
export function delimited(field: number, content: Uint8Array | string): Uint8Array {
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  return Buffer.concat([encodeVarint(BigInt((field << 3) | DELIMITED)), encodeVarint(BigInt(bytes.length)), bytes]);
}

export function varint(field: number, value: bigint): Uint8Array {
  return Buffer.concat([encodeVarint(BigInt((field << 3) | VARINT)), encodeVarint(value)]);
}

export function message(...fields: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(fields);
}

function encodeVarint(value: bigint): Uint8Array {
  const bytes: number[] = [];
  let left = BigInt.asUintN(64, value);
  while (left > 0x7fn) {
    bytes.push(Number(left & 0x7fn) | 0x80);
    left >>= 7n;
  }
  bytes.push(Number(left));
  return Uint8Array.from(bytes);
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
