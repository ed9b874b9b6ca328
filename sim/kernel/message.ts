/** One request to the kernel model as it arrives, and the messages with which the model answers. */
import { type ErrnoName, errnoOf } from "../../src/linux/errno.ts";
import { AttributeCursor, type MessageCursor } from "../../src/linux/netlink/message-reader.ts";
import { MessageWriter } from "../../src/linux/netlink/message-writer.ts";
import { FLAG, HEADER_LENGTH, MESSAGE } from "../../src/linux/netlink/wire.ts";

const PORT_AT = 12;
const SEQUENCE_AT = 8;
/** A dump is sent in datagrams of at most this size. */
const LARGEST_DATAGRAM = 16_384;

/** A refusal; `text` is the kernel's explanation. Anything else that a handler throws is a fault of the model. */
export class Refusal extends Error {
  readonly errno: number;

  constructor(name: ErrnoName, text = "") {
    super(text);
    this.errno = errnoOf(name);
  }
}

/** The values of attributes by their type; the last one of a type counts. */
export type Attributes = ReadonlyMap<number, Uint8Array>;

export interface KernelRequest {
  readonly type: number;
  readonly flags: number;
  readonly sequence: number;
  /** The address of the socket that sent it. */
  readonly port: number;
  /** After the netlink header. */
  readonly payload: DataView;
}

export function requestAt(message: MessageCursor, port: number): KernelRequest {
  const { view, start, end } = message;
  const payload = new DataView(view.buffer.slice(view.byteOffset + start, view.byteOffset + end));
  return { type: message.type, flags: message.flags, sequence: message.sequence, port, payload };
}

export function attributesOf(request: KernelRequest, headerLength: number): Attributes {
  if (request.payload.byteLength < headerLength) throw new Refusal("EINVAL");
  return attributesIn(request.payload, headerLength, request.payload.byteLength);
}

export function nestedAttributes(value: Uint8Array | undefined, headerLength = 0): Attributes {
  if (value === undefined) return new Map();
  return attributesIn(new DataView(value.buffer, value.byteOffset), headerLength, value.length);
}

function attributesIn(view: DataView, start: number, end: number): Attributes {
  const found = new Map<number, Uint8Array>();
  const cursor = new AttributeCursor(view, start, end);
  while (cursor.next()) found.set(cursor.type, cursor.copy());
  return found;
}

export function numberIn(attributes: Attributes, type: number): number | undefined {
  const value = attributes.get(type);
  return value === undefined || value.length < 4 ? undefined : new DataView(value.buffer).getUint32(0, true);
}

export function textIn(attributes: Attributes, type: number): string | undefined {
  const value = attributes.get(type);
  if (value === undefined) return undefined;
  const zero = value.indexOf(0);
  return new TextDecoder().decode(zero === -1 ? value : value.subarray(0, zero));
}

/** What the kernel sends in one message. */
export interface KernelMessage {
  readonly type: number;
  readonly flags?: number;
  readonly write: (writer: MessageWriter) => void;
}

/** To whom the message is an answer; 0 and 0 if it is an event without a cause. */
export interface Cause {
  readonly sequence: number;
  readonly port: number;
}

export function encodeMessage(message: KernelMessage, cause: Cause, moreFlags = 0): Uint8Array<ArrayBuffer> {
  return encodeMessages([{ ...message, flags: (message.flags ?? 0) | moreFlags }], cause);
}

function encodeMessages(messages: readonly KernelMessage[], cause: Cause): Uint8Array<ArrayBuffer> {
  const writer = new MessageWriter(512);
  const starts: number[] = [];
  for (const { type, flags = 0, write } of messages) {
    starts.push(writer.length);
    writer.beginMessage(type, flags, cause.sequence);
    write(writer);
    writer.endMessage();
  }
  const bytes = writer.written().slice();
  const view = new DataView(bytes.buffer);
  for (const start of starts) view.setUint32(start + PORT_AT, cause.port, true);
  return bytes;
}

/** The datagrams of a whole table, with its end. */
export function encodeDump(
  messages: readonly KernelMessage[],
  request: KernelRequest,
  moreFlags = 0,
): readonly Uint8Array<ArrayBuffer>[] {
  const datagrams: Uint8Array<ArrayBuffer>[] = [];
  let pending: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  const flush = () => {
    if (pending.length > 0) datagrams.push(joined(pending, length));
    pending = [];
    length = 0;
  };
  for (const message of messages) {
    const bytes = encodeMessage(message, request, FLAG.multipart | moreFlags);
    if (length + bytes.length > LARGEST_DATAGRAM) flush();
    pending.push(bytes);
    length += bytes.length;
  }
  flush();
  const end: KernelMessage = { type: MESSAGE.done, write: (writer) => writer.raw(new Uint8Array(4)) };
  datagrams.push(encodeMessage(end, request, FLAG.multipart | moreFlags));
  return datagrams;
}

/** Error number 0 is success. The echo of the request ends at its header, as the option CAP_ACK asks for. */
export function encodeAcknowledgement(request: KernelRequest, errno: number, text: string): Uint8Array<ArrayBuffer> {
  const flags = FLAG.capped | (text === "" ? 0 : FLAG.acknowledgeTlvs);
  return encodeMessage(
    {
      type: MESSAGE.error,
      flags,
      write(writer) {
        const head = new Uint8Array(4 + HEADER_LENGTH);
        const view = new DataView(head.buffer);
        view.setInt32(0, -errno, true);
        view.setUint32(4, HEADER_LENGTH + request.payload.byteLength, true);
        view.setUint16(8, request.type, true);
        view.setUint16(10, request.flags, true);
        view.setUint32(4 + SEQUENCE_AT, request.sequence, true);
        view.setUint32(4 + PORT_AT, request.port, true);
        writer.raw(head);
        if (text !== "") writer.text(1, text);
      },
    },
    request,
  );
}

function joined(parts: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
