/**
 * Writes a sequence of netlink messages into one growing buffer.
 *
 *   message   := length:u32 type:u16 flags:u16 sequence:u32 port:u32  payload
 *   attribute := length:u16 type:u16  value  padding to 4 bytes
 *
 * Pure: contains only the framing, nothing of any family. Numbers are in host byte
 * order, which is little-endian on every architecture that the product is built for;
 * the `Big` methods write network byte order, which netfilter uses.
 */
import { putText } from "../../bytes.ts";
import { ALIGNMENT, HEADER_LENGTH, NESTED } from "./wire.ts";

const encoder = new TextEncoder();
const LARGEST_ATTRIBUTE = 0xffff;

export class MessageWriter {
  #bytes: Uint8Array<ArrayBuffer>;
  #view: DataView<ArrayBuffer>;
  #length = 0;
  #messageStart = 0;

  constructor(capacity = 4096) {
    this.#bytes = new Uint8Array(capacity);
    this.#view = new DataView(this.#bytes.buffer);
  }

  /** Starts again in the same memory: earlier results of `written` are no longer valid. */
  clear(): void {
    this.#length = 0;
  }

  get length(): number {
    return this.#length;
  }

  /** Everything written so far: a view that the next write may invalidate. */
  written(): Uint8Array<ArrayBuffer> {
    return this.#bytes.subarray(0, this.#length);
  }

  beginMessage(type: number, flags: number, sequence: number): void {
    this.#reserve(HEADER_LENGTH);
    this.#messageStart = this.#length;
    this.#view.setUint16(this.#length + 4, type, true);
    this.#view.setUint16(this.#length + 6, flags, true);
    this.#view.setUint32(this.#length + 8, sequence, true);
    this.#view.setUint32(this.#length + 12, 0, true);
    this.#length += HEADER_LENGTH;
  }

  endMessage(): void {
    this.#view.setUint32(this.#messageStart, this.#length - this.#messageStart, true);
  }

  /** The encoded fixed header of a family. Padded like everything else. */
  raw(value: Uint8Array): void {
    this.#reserve(value.length + ALIGNMENT);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
    this.#pad();
  }

  flag(type: number): void {
    this.#header(type, 0);
  }

  u8(type: number, value: number): void {
    this.#header(type, 1);
    this.#bytes[this.#length] = value;
    this.#length += 1;
    this.#pad();
  }

  u16(type: number, value: number): void {
    this.#header(type, 2);
    this.#view.setUint16(this.#length, value, true);
    this.#length += 2;
    this.#pad();
  }

  u16Big(type: number, value: number): void {
    this.#header(type, 2);
    this.#view.setUint16(this.#length, value, false);
    this.#length += 2;
    this.#pad();
  }

  u32(type: number, value: number): void {
    this.#header(type, 4);
    this.#view.setUint32(this.#length, value, true);
    this.#length += 4;
  }

  u32Big(type: number, value: number): void {
    this.#header(type, 4);
    this.#view.setUint32(this.#length, value, false);
    this.#length += 4;
  }

  u64(type: number, value: bigint): void {
    this.#header(type, 8);
    this.#view.setBigUint64(this.#length, value, true);
    this.#length += 8;
  }

  u64Big(type: number, value: bigint): void {
    this.#header(type, 8);
    this.#view.setBigUint64(this.#length, value, false);
    this.#length += 8;
  }

  /** A string with a zero byte at its end, as `ip` and `nft` send it. */
  text(type: number, value: string): void {
    this.#reserve(value.length * 3 + 12);
    const start = this.#length;
    this.#length += 4;
    this.#length = putText(this.#bytes, this.#length, value) ?? this.#length + this.#encode(value);
    this.#bytes[this.#length] = 0;
    this.#length += 1;
    this.#view.setUint16(start, this.#length - start, true);
    this.#view.setUint16(start + 2, type, true);
    this.#pad();
  }

  /** Writes a text that is not plain ASCII; returns its length. */
  #encode(value: string): number {
    return encoder.encodeInto(value, this.#bytes.subarray(this.#length)).written;
  }

  bytes(type: number, value: Uint8Array): void {
    this.#header(type, value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
    this.#pad();
  }

  /** Starts an attribute that contains attributes; pass the returned value to `close`. */
  open(type: number): number {
    const start = this.#length;
    this.#header(type | NESTED, 0);
    return start;
  }

  /** Like `open`, without the nested flag: older rtnetlink attributes do not have it. */
  openUnmarked(type: number): number {
    const start = this.#length;
    this.#header(type, 0);
    return start;
  }

  close(start: number): void {
    const length = this.#length - start;
    if (length > LARGEST_ATTRIBUTE)
      throw new RangeError(`attribute of ${length} bytes: the maximum is ${LARGEST_ATTRIBUTE}`);
    this.#view.setUint16(start, length, true);
  }

  #header(type: number, valueLength: number): void {
    this.#reserve(valueLength + 4 + ALIGNMENT);
    this.#view.setUint16(this.#length, valueLength + 4, true);
    this.#view.setUint16(this.#length + 2, type, true);
    this.#length += 4;
  }

  #pad(): void {
    while (this.#length % ALIGNMENT !== 0) this.#bytes[this.#length++] = 0;
  }

  #reserve(more: number): void {
    if (this.#length + more <= this.#bytes.length) return;
    let capacity = this.#bytes.length * 2;
    while (capacity < this.#length + more) capacity *= 2;
    const grown = new Uint8Array(capacity);
    grown.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = grown;
    this.#view = new DataView(grown.buffer);
  }
}
