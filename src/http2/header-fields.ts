/**
 * Header fields as HTTP/2 writes them (HPACK, RFC 7541). What is sent is written
 * out in full: a few fields, and one of them a secret that no table may keep.
 * What arrives may be shortened in every way: a reader stands for one connection,
 * because later fields refer to earlier ones.
 */
import { Http2Failure } from "./failure.ts";
import { decodeHuffman } from "./huffman.ts";

export type HeaderField = readonly [name: string, value: string];

/** A literal that nobody on the way may put into a table. */
const NEVER_INDEXED = 0x10;

export function encodeFields(fields: readonly HeaderField[]): Uint8Array {
  return Buffer.concat(
    fields.flatMap(([name, value]) => [[NEVER_INDEXED], ...textParts(name), ...textParts(value)].map(toBytes)),
  );
}

function textParts(text: string): readonly (Uint8Array | readonly number[])[] {
  const bytes = Buffer.from(text, "latin1");
  return [integerBytes(bytes.length), bytes];
}

function toBytes(part: Uint8Array | readonly number[]): Uint8Array {
  return part instanceof Uint8Array ? part : Uint8Array.from(part);
}

/** A length, in the seven low bits and as many bytes behind as it needs. */
function integerBytes(value: number): readonly number[] {
  if (value < 0x7f) return [value];
  const bytes = [0x7f];
  let left = value - 0x7f;
  for (; left >= 0x80; left >>>= 7) bytes.push((left & 0x7f) | 0x80);
  return [...bytes, left];
}

/** Those that both sides know from the start, by their numbers from 1 on (RFC 7541, appendix A). */
const STATIC_FIELDS: readonly HeaderField[] = [
  ":authority, :method GET, :method POST, :path /, :path /index.html, :scheme http, :scheme https",
  ":status 200, :status 204, :status 206, :status 304, :status 400, :status 404, :status 500",
  "accept-charset, accept-encoding gzip;deflate, accept-language, accept-ranges, accept, access-control-allow-origin",
  "age, allow, authorization, cache-control, content-disposition, content-encoding, content-language, content-length",
  "content-location, content-range, content-type, cookie, date, etag, expect, expires, from, host, if-match",
  "if-modified-since, if-none-match, if-range, if-unmodified-since, last-modified, link, location, max-forwards",
  "proxy-authenticate, proxy-authorization, range, referer, refresh, retry-after, server, set-cookie",
  "strict-transport-security, transfer-encoding, user-agent, vary, via, www-authenticate",
]
  .join(", ")
  .split(", ")
  .map((field) => {
    const [name = "", value = ""] = field.split(" ");
    return [name, value.replace(";", ", ")] as const;
  });

/** What a field takes in the table beside its letters, each of which is a byte. */
const FIELD_OVERHEAD = 32;
/** Where neither side asks for another size. */
const TABLE_SIZE = 4096;

export class FieldReader {
  /** The newest first. */
  private readonly table: HeaderField[] = [];
  private largest = TABLE_SIZE;

  read(block: Uint8Array): ReadonlyMap<string, string> {
    const source = new Source(block);
    const fields = new Map<string, string>();
    while (!source.isAtEnd) {
      const field = this.next(source);
      if (field !== undefined) fields.set(...field);
    }
    return fields;
  }

  /** `undefined`: the size of the table was told. */
  private next(source: Source): HeaderField | undefined {
    const first = source.peek();
    if (first >= 0x80) return this.fieldAt(source.integer(7));
    if (first >= 0x40) return this.keep(this.literal(source, 6));
    if (first >= 0x20) return this.resize(source.integer(5));
    return this.literal(source, 4);
  }

  private literal(source: Source, bits: number): HeaderField {
    const index = source.integer(bits);
    const name = index === 0 ? source.text() : this.fieldAt(index)[0];
    return [name, source.text()];
  }

  private fieldAt(index: number): HeaderField {
    const field = STATIC_FIELDS[index - 1] ?? this.table[index - 1 - STATIC_FIELDS.length];
    if (field === undefined) throw new Http2Failure("broken", "a header field refers to one that is not there");
    return field;
  }

  private keep(field: HeaderField): HeaderField {
    this.table.unshift(field);
    this.evict();
    return field;
  }

  private resize(largest: number): undefined {
    if (largest > TABLE_SIZE) throw new Http2Failure("broken", "the table of header fields is larger than allowed");
    this.largest = largest;
    this.evict();
  }

  private evict(): void {
    let size = this.table.reduce((sum, field) => sum + sizeOf(field), 0);
    while (size > this.largest) {
      const oldest = this.table.pop();
      if (oldest === undefined) return;
      size -= sizeOf(oldest);
    }
  }
}

function sizeOf([name, value]: HeaderField): number {
  return name.length + value.length + FIELD_OVERHEAD;
}

class Source {
  private at = 0;

  constructor(private readonly bytes: Uint8Array) {}

  get isAtEnd(): boolean {
    return this.at >= this.bytes.length;
  }

  peek(): number {
    return this.bytes[this.at] ?? 0;
  }

  /** A number in the low bits of the next byte, and behind it where it is larger than they hold. */
  integer(bits: number): number {
    const most = (1 << bits) - 1;
    let value = this.byte() & most;
    if (value < most) return value;
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.byte();
      value += (byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw cutOff();
  }

  text(): string {
    const isCoded = this.peek() >= 0x80;
    const end = this.integer(7) + this.at;
    if (end > this.bytes.length) throw cutOff();
    const content = this.bytes.subarray(this.at, end);
    this.at = end;
    return Buffer.from(isCoded ? decodeHuffman(content) : content).toString("latin1");
  }

  private byte(): number {
    const byte = this.bytes[this.at++];
    if (byte === undefined) throw cutOff();
    return byte;
  }
}

function cutOff(): Http2Failure {
  return new Http2Failure("broken", "header fields are cut off");
}
