/**
 * What the plugin's process and the node agent send each other: a number and
 * two pieces of bytes, which nobody looks into on the way.
 *
 *   | u32 number | u32 length of head | u32 length of body | head | body |
 */
import { numberAt, putNumber } from "../bytes.ts";

/** How many bytes stand before the head. */
export const NUMBERS_BYTES = 12;

export interface Frame {
  readonly number: number;
  readonly head: Uint8Array;
  readonly body: Uint8Array;
}

/** Where the pieces of a frame lie that is at the beginning of some bytes. */
export interface FramePlaces {
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

/** For whoever has put the pieces in their places already. */
export function putFrameNumbers(bytes: Uint8Array, number: number, headLength: number, bodyLength: number): void {
  putNumber(bytes, 0, number);
  putNumber(bytes, 4, headLength);
  putNumber(bytes, 8, bodyLength);
}

/** The frame that the bytes begin with; `undefined` while some of it is missing. */
export function decodeFrame(bytes: Uint8Array): Frame | undefined {
  const places = framePlaces(bytes, bytes.length);
  if (places === undefined || bytes.length < places.end) return undefined;
  const { number, bodyAt, end } = places;
  return { number, head: bytes.subarray(NUMBERS_BYTES, bodyAt), body: bytes.subarray(bodyAt, end) };
}

/** `undefined` while fewer bytes have come than tell it. */
export function framePlaces(bytes: Uint8Array, count: number): FramePlaces | undefined {
  if (count < NUMBERS_BYTES) return undefined;
  const bodyAt = NUMBERS_BYTES + numberAt(bytes, 4);
  return { number: numberAt(bytes, 0), bodyAt, end: bodyAt + numberAt(bytes, 8) };
}

export function joined(left: Uint8Array, right: Uint8Array): Uint8Array {
  if (left.length === 0) return right;
  const both = new Uint8Array(left.length + right.length);
  both.set(left);
  both.set(right, left.length);
  return both;
}
