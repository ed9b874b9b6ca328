/**
 * The message format between the plugin's process and the node agent: a number
 * and two opaque byte strings.
 *
 *   | u32 number | u32 length of head | u32 length of body | head | body |
 */
import { enlarged, numberAt, putNumber } from "../../bytes.ts";

/** A larger frame is refused: configs and results are some kilobytes long. */
export const MOST_FRAME_BYTES = 16 * 1024 * 1024;

/** Length of the fixed part, before the head. */
export const NUMBERS_BYTES = 12;

export interface Frame {
  readonly number: number;
  readonly head: Uint8Array;
  readonly body: Uint8Array;
}

/** Offsets in a frame that starts at the first byte of a buffer. */
export interface FrameLayout {
  readonly number: number;
  readonly bodyAt: number;
  readonly end: number;
}

export function encodeFrame({ number, head, body }: Frame): Uint8Array {
  const bytes = new Uint8Array(NUMBERS_BYTES + head.length + body.length);
  putFrameNumbers(bytes, number, head.length, body.length);
  bytes.set(head, NUMBERS_BYTES);
  bytes.set(body, NUMBERS_BYTES + head.length);
  return bytes;
}

/** For a caller that has already written head and body at their offsets. */
export function putFrameNumbers(bytes: Uint8Array, number: number, headLength: number, bodyLength: number): void {
  putNumber(bytes, 0, number);
  putNumber(bytes, 4, headLength);
  putNumber(bytes, 8, bodyLength);
}

/** Decodes the frame at the start of the bytes; `undefined` while it is incomplete. */
export function decodeFrame(bytes: Uint8Array): Frame | undefined {
  const layout = frameLayout(bytes, bytes.length);
  if (layout === undefined || bytes.length < layout.end) return undefined;
  const { number, bodyAt, end } = layout;
  return { number, head: bytes.subarray(NUMBERS_BYTES, bodyAt), body: bytes.subarray(bodyAt, end) };
}

/** `undefined` until the first `NUMBERS_BYTES` bytes have arrived. */
export function frameLayout(bytes: Uint8Array, count: number): FrameLayout | undefined {
  if (count < NUMBERS_BYTES) return undefined;
  const bodyAt = NUMBERS_BYTES + numberAt(bytes, 4);
  return { number: numberAt(bytes, 0), bodyAt, end: bodyAt + numberAt(bytes, 8) };
}

/** Collects a frame that arrives in pieces. The time it takes is linear in the length of the frame, however many pieces there are. */
export class FrameBuffer {
  private bytes: Uint8Array = new Uint8Array(0);
  private count = 0;

  /** Returns the frame once it is complete. */
  add(piece: Uint8Array): Frame | "too large" | undefined {
    const length = this.count + piece.length;
    if (length > this.bytes.length) this.bytes = enlarged(this.bytes, Math.max(length, 2 * this.bytes.length));
    this.bytes.set(piece, this.count);
    this.count = length;
    const layout = frameLayout(this.bytes, length);
    if (layout !== undefined && layout.end > MOST_FRAME_BYTES) return "too large";
    return decodeFrame(this.bytes.subarray(0, length));
  }
}

export function joined(left: Uint8Array, right: Uint8Array): Uint8Array {
  if (left.length === 0) return right;
  const both = new Uint8Array(left.length + right.length);
  both.set(left);
  both.set(right, left.length);
  return both;
}
