/**
 * What the plugin's process and the node agent send each other: lengths, a
 * header in JSON, and bytes that are passed on as they are.
 *
 *   | u32 length of header | u32 length of body | header | body |
 */
const LENGTHS_BYTES = 8;

export interface Frame {
  readonly header: Readonly<Record<string, unknown>>;
  readonly body: Uint8Array;
}

export function encodeFrame({ header, body }: Frame): Uint8Array {
  const headerBytes = new TextEncoder().encode(JSON.stringify(header));
  const bytes = new Uint8Array(LENGTHS_BYTES + headerBytes.length + body.length);
  const lengths = new DataView(bytes.buffer);
  lengths.setUint32(0, headerBytes.length, true);
  lengths.setUint32(4, body.length, true);
  bytes.set(headerBytes, LENGTHS_BYTES);
  bytes.set(body, LENGTHS_BYTES + headerBytes.length);
  return bytes;
}

/** The frame that the bytes begin with; `undefined` while some of it is missing. */
export function decodeFrame(bytes: Uint8Array): Frame | undefined {
  if (bytes.length < LENGTHS_BYTES) return undefined;
  const lengths = new DataView(bytes.buffer, bytes.byteOffset, LENGTHS_BYTES);
  const bodyAt = LENGTHS_BYTES + lengths.getUint32(0, true);
  const end = bodyAt + lengths.getUint32(4, true);
  if (bytes.length < end) return undefined;
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(LENGTHS_BYTES, bodyAt)));
  return { header, body: bytes.subarray(bodyAt, end) };
}

export function joined(left: Uint8Array, right: Uint8Array): Uint8Array {
  if (left.length === 0) return right;
  const both = new Uint8Array(left.length + right.length);
  both.set(left);
  both.set(right, left.length);
  return both;
}
