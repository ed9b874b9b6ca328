/**
 * HTTP/2's frames (RFC 9113, section 4): nine bytes that tell length, type,
 * flags and stream, and a payload.
 */
import { Http2Failure, NO_HTTP2 } from "./failure.ts";

export const DATA = 0;
export const HEADERS = 1;
export const RESET = 3;
export const SETTINGS = 4;
export const PING = 6;
export const GO_AWAY = 7;
export const WINDOW_UPDATE = 8;
export const CONTINUATION = 9;

/** Of DATA and HEADERS. */
export const END_STREAM = 0x1;
/** Of SETTINGS and PING. */
export const ACKNOWLEDGED = 0x1;
export const END_HEADERS = 0x4;
const PADDED = 0x8;
const WITH_PRIORITY = 0x20;

/** Of both sides, where neither asks for more; this one does not. */
export const LARGEST_PAYLOAD = 16_384;

/** Of streams and windows. */
export const LARGEST_COUNT = 0x7fff_ffff;

const HEAD_BYTES = 9;
const PRIORITY_BYTES = 5;

export interface Frame {
  readonly type: number;
  readonly flags: number;
  /** 0: the connection itself. */
  readonly stream: number;
  readonly payload: Uint8Array;
}

export function encodeFrame({ type, flags, stream, payload }: Frame): Uint8Array {
  const bytes = new Uint8Array(HEAD_BYTES + payload.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, (payload.length << 8) | type);
  view.setUint8(4, flags);
  view.setUint32(5, stream);
  bytes.set(payload, HEAD_BYTES);
  return bytes;
}

/** Frames out of the pieces in which they arrive. */
export class FrameReader {
  private pending: Uint8Array = new Uint8Array(0);

  read(piece: Uint8Array): readonly Frame[] {
    const bytes = this.pending.length === 0 ? piece : Buffer.concat([this.pending, piece]);
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const frames: Frame[] = [];
    let at = 0;
    while (bytes.length - at >= HEAD_BYTES) {
      const lengthAndType = view.getUint32(at);
      const length = lengthAndType >>> 8;
      if (length > LARGEST_PAYLOAD) throw new Http2Failure("broken", NO_HTTP2);
      const end = at + HEAD_BYTES + length;
      if (end > bytes.length) break;
      frames.push({
        type: lengthAndType & 0xff,
        flags: view.getUint8(at + 4),
        stream: view.getUint32(at + 5) & LARGEST_COUNT,
        payload: bytes.subarray(at + HEAD_BYTES, end),
      });
      at = end;
    }
    this.pending = bytes.subarray(at);
    return frames;
  }
}

/** The payload of DATA or HEADERS without what may stand around it. */
export function contentOf({ type, flags, payload }: Frame): Uint8Array {
  const isPadded = (flags & PADDED) !== 0;
  const start = (isPadded ? 1 : 0) + (type === HEADERS && (flags & WITH_PRIORITY) !== 0 ? PRIORITY_BYTES : 0);
  const end = payload.length - (isPadded ? (payload[0] ?? 0) : 0);
  if (start > end) throw new Http2Failure("broken", "a frame has more padding than it is long");
  return payload.subarray(start, end);
}

/** A number of 32 bits, as several frames carry it. */
export function numberAt(payload: Uint8Array, at: number): number {
  if (payload.length < at + 4) throw new Http2Failure("broken", "a frame is cut off");
  return new DataView(payload.buffer, payload.byteOffset).getUint32(at);
}

/** A stream or a window: of 31 bits, behind one that means nothing. */
export function countAt(payload: Uint8Array, at: number): number {
  return numberAt(payload, at) & LARGEST_COUNT;
}

export function numberBytes(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value);
  return bytes;
}
