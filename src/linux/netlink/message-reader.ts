/**
 * Reads the kernel's replies: a sequence of messages with attributes. These are
 * cursors over the given bytes, nothing is copied; a decoder that keeps bytes uses
 * `copy()`.
 *
 * Lengths are checked: a truncated message throws.
 */
import { counted } from "../../counted.ts";
import { PluginError } from "../../errors.ts";
import { ALIGNMENT, ATTRIBUTE_TYPE_MASK, aligned, HEADER_LENGTH } from "./wire.ts";

const decoder = new TextDecoder();

/** Iterates over the messages of one datagram. */
export class MessageCursor {
  readonly view: DataView;
  readonly bytes: Uint8Array;
  readonly #end: number;
  #next = 0;
  type = 0;
  flags = 0;
  sequence = 0;
  /** The address of the socket that asked for it, or whose change the message is about. */
  port = 0;
  /** Where the payload starts and ends. */
  start = 0;
  end = 0;

  constructor(bytes: Uint8Array, length = bytes.length) {
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer, bytes.byteOffset, length);
    this.#end = length;
  }

  next(): boolean {
    if (this.#next + HEADER_LENGTH > this.#end) return false;
    const length = this.view.getUint32(this.#next, true);
    if (length < HEADER_LENGTH || this.#next + length > this.#end) throw malformed("message", length);
    this.type = this.view.getUint16(this.#next + 4, true);
    this.flags = this.view.getUint16(this.#next + 6, true);
    this.sequence = this.view.getUint32(this.#next + 8, true);
    this.port = this.view.getUint32(this.#next + 12, true);
    this.start = this.#next + HEADER_LENGTH;
    this.end = this.#next + length;
    this.#next += aligned(length);
    return true;
  }

  /** The attributes after the family's own header. */
  attributes(headerLength: number): AttributeCursor {
    return new AttributeCursor(this.view, this.start + aligned(headerLength), this.end);
  }
}

/** Iterates over the attributes of a message or of a nested attribute. */
export class AttributeCursor {
  readonly #view: DataView;
  readonly #end: number;
  #next: number;
  #start = 0;
  #stop = 0;
  type = 0;

  constructor(view: DataView, start: number, end: number) {
    this.#view = view;
    this.#next = start;
    this.#end = end;
  }

  next(): boolean {
    if (this.#next + ALIGNMENT > this.#end) return false;
    const length = this.#view.getUint16(this.#next, true);
    if (length < ALIGNMENT || this.#next + length > this.#end) throw malformed("attribute", length);
    this.type = this.#view.getUint16(this.#next + 2, true) & ATTRIBUTE_TYPE_MASK;
    this.#start = this.#next + ALIGNMENT;
    this.#stop = this.#next + length;
    this.#next += aligned(length);
    return true;
  }

  get length(): number {
    return this.#stop - this.#start;
  }

  /** Where its value starts and ends, in the view of the message. */
  get start(): number {
    return this.#start;
  }

  get stop(): number {
    return this.#stop;
  }

  u8(): number {
    return this.#view.getUint8(this.#start);
  }

  u16(): number {
    return this.#view.getUint16(this.#start, true);
  }

  u16Big(): number {
    return this.#view.getUint16(this.#start, false);
  }

  u32(): number {
    return this.#view.getUint32(this.#start, true);
  }

  i32(): number {
    return this.#view.getInt32(this.#start, true);
  }

  u32Big(): number {
    return this.#view.getUint32(this.#start, false);
  }

  i32Big(): number {
    return this.#view.getInt32(this.#start, false);
  }

  u64(): bigint {
    return this.#view.getBigUint64(this.#start, true);
  }

  u64Big(): bigint {
    return this.#view.getBigUint64(this.#start, false);
  }

  /** A string, with or without a zero byte at its end. */
  text(): string {
    const bytes = this.#bytes();
    const zero = bytes.indexOf(0);
    return decoder.decode(zero === -1 ? bytes : bytes.subarray(0, zero));
  }

  /** A copy of the value, independent of the buffer. */
  copy(): Uint8Array {
    return this.#bytes().slice();
  }

  nested(headerLength = 0): AttributeCursor {
    return new AttributeCursor(this.#view, this.#start + headerLength, this.#stop);
  }

  #bytes(): Uint8Array {
    return new Uint8Array(this.#view.buffer, this.#view.byteOffset + this.#start, this.#stop - this.#start);
  }
}

function malformed(what: string, length: number): PluginError {
  return new PluginError(
    "kernel-refused",
    `Cannot read the kernel's reply: a ${what} of ${counted(length, "byte")} does not fit`,
  );
}
