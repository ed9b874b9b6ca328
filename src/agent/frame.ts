/**
 * What the plugin's process and the node agent send each other: a number and
 * two pieces of bytes, which nobody looks into on the way.
 *
 *   | u32 number | u32 length of head | u32 length of body | head | body |
 */
const NUMBERS_BYTES = 12;

export interface Frame {
  readonly number: number;
  readonly head: Uint8Array;
  readonly body: Uint8Array;
}

export function encodeFrame({ number, head, body }: Frame): Uint8Array {
  const bytes = new Uint8Array(NUMBERS_BYTES + head.length + body.length);
  const numbers = new DataView(bytes.buffer);
  numbers.setUint32(0, number, true);
  numbers.setUint32(4, head.length, true);
  numbers.setUint32(8, body.length, true);
  bytes.set(head, NUMBERS_BYTES);
  bytes.set(body, NUMBERS_BYTES + head.length);
  return bytes;
}

/** The frame that the bytes begin with; `undefined` while some of it is missing. */
export function decodeFrame(bytes: Uint8Array): Frame | undefined {
  if (bytes.length < NUMBERS_BYTES) return undefined;
  const numbers = new DataView(bytes.buffer, bytes.byteOffset, NUMBERS_BYTES);
  const bodyAt = NUMBERS_BYTES + numbers.getUint32(4, true);
  const end = bodyAt + numbers.getUint32(8, true);
  if (bytes.length < end) return undefined;
  return {
    number: numbers.getUint32(0, true),
    head: bytes.subarray(NUMBERS_BYTES, bodyAt),
    body: bytes.subarray(bodyAt, end),
  };
}

export function joined(left: Uint8Array, right: Uint8Array): Uint8Array {
  if (left.length === 0) return right;
  const both = new Uint8Array(left.length + right.length);
  both.set(left);
  both.set(right, left.length);
  return both;
}
