/**
 * As much of HTTP/2 as one call with a stream of responses needs. Pure.
 *
 * The runtime's own server refuses these clients: as the authority of a call they send the path of the socket
 * (`/var/run/felix/nodeagent/socket`), which is not a valid one. Here the fields of a call are not read at all: a socket of
 * policy sync has one method.
 */
import { encodeMessage } from "../../grpc/message-frames.ts";

export interface Frame {
  readonly type: number;
  readonly flags: number;
  /** 0: the connection. */
  readonly stream: number;
  readonly payload: Uint8Array;
}

export const FRAME = {
  data: 0,
  headers: 1,
  resetStream: 3,
  settings: 4,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
} as const;

export const FLAG = { ack: 1, endStream: 1, endHeaders: 4 } as const;

/** What every connection begins with. */
const PREFACE = new TextEncoder().encode("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** Of the payload of a frame, unless both agree on more. */
export const MOST_FRAME_BYTES = 16_384;
export const INITIAL_WINDOW = 65_535;
const HEADER_BYTES = 9;
const INITIAL_WINDOW_SETTING = 4;
const MOST_STREAMS_SETTING = 3;
const REFUSED_STREAM = 7;

export function encodeFrame({ type, flags, stream, payload }: Frame): Uint8Array {
  const { length } = payload;
  const header = [length >>> 16, length >>> 8, length, type, flags, stream >>> 24, stream >>> 16, stream >>> 8, stream];
  const bytes = new Uint8Array(HEADER_BYTES + length);
  bytes.set(header);
  bytes.set(payload, HEADER_BYTES);
  return bytes;
}

/** A client has one call at a time. */
export function ownSettings(): Uint8Array {
  const payload = new Uint8Array([0, MOST_STREAMS_SETTING, 0, 0, 0, 1]);
  return encodeFrame({ type: FRAME.settings, flags: 0, stream: 0, payload });
}

export function settingsAck(): Uint8Array {
  return encodeFrame({ type: FRAME.settings, flags: FLAG.ack, stream: 0, payload: new Uint8Array(0) });
}

export function pingFrame(payload: Uint8Array, flags: number): Uint8Array {
  return encodeFrame({ type: FRAME.ping, flags, stream: 0, payload });
}

export function refuseStream(stream: number): Uint8Array {
  return encodeFrame({ type: FRAME.resetStream, flags: 0, stream, payload: new Uint8Array([0, 0, 0, REFUSED_STREAM]) });
}

/** `:status: 200`, which HPACK has in its table, and `content-type`, of which it has the name. */
export function responseHeaders(stream: number): Uint8Array {
  const value = new TextEncoder().encode("application/grpc");
  const payload = new Uint8Array([0x88, 0x0f, 0x10, value.length, ...value]);
  return encodeFrame({ type: FRAME.headers, flags: FLAG.endHeaders, stream, payload });
}

export function encodeMessages(messages: readonly Uint8Array[]): Uint8Array {
  return Buffer.concat(messages.map(encodeMessage));
}

/** `undefined` if the client sets none. */
export function initialWindowIn(settings: Uint8Array): number | undefined {
  let window: number | undefined;
  for (let at = 0; at + 6 <= settings.length; at += 6) {
    if (numberAt(settings, at, 2) === INITIAL_WINDOW_SETTING) window = numberAt(settings, at + 2, 4);
  }
  return window;
}

export function incrementIn(payload: Uint8Array): number {
  return numberAt(payload, 0, 4) % 2 ** 31;
}

function numberAt(bytes: Uint8Array, at: number, count: number): number {
  let value = 0;
  for (let index = at; index < at + count; index += 1) value = value * 256 + (bytes[index] ?? 0);
  return value;
}

/** Splits what a client sends into frames. */
export class FrameReader {
  private buffered: Uint8Array = new Uint8Array(0);
  private hasBegun = false;

  /** Returns `false` if these bytes are not of an HTTP/2 client, or if `take` does. */
  read(bytes: Uint8Array, take: (frame: Frame) => boolean): boolean {
    this.buffered = this.buffered.length === 0 ? bytes.slice() : Buffer.concat([this.buffered, bytes]);
    if (!this.hasBegun) {
      const begin = this.buffered.subarray(0, PREFACE.length);
      if (!Bun.deepEquals(Buffer.from(begin), Buffer.from(PREFACE.subarray(0, begin.length)))) return false;
      if (begin.length < PREFACE.length) return true;
      this.hasBegun = true;
      this.buffered = this.buffered.subarray(PREFACE.length);
    }
    while (this.buffered.length >= HEADER_BYTES) {
      const length = numberAt(this.buffered, 0, 3);
      if (length > MOST_FRAME_BYTES) return false;
      const end = HEADER_BYTES + length;
      if (this.buffered.length < end) return true;
      const [type = 0, flags = 0] = this.buffered.subarray(3, 5);
      const stream = numberAt(this.buffered, 5, 4) % 2 ** 31;
      const payload = this.buffered.subarray(HEADER_BYTES, end);
      this.buffered = this.buffered.subarray(end);
      if (!take({ type, flags, stream, payload })) return false;
    }
    return true;
  }
}
