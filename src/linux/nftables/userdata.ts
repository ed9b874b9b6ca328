/**
 * Data that user space attaches to the kernel's objects, in the format of `nft`, so
 * that it can list them properly: a sequence of  type:u8 length:u8 value.
 */
import { putText } from "../../bytes.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export interface UserdataEntry {
  readonly type: number;
  readonly value: Uint8Array;
}

/** Comments of tables, chains, rules and elements; a set's has another number. */
export const COMMENT = 0;
export const SET_COMMENT = 7;
const LONGEST_VALUE = 255;
const LONGEST_COMMENT = 128;
const commentText = new Uint8Array(LONGEST_COMMENT);

export function encodeUserdata(entries: readonly UserdataEntry[]): Uint8Array {
  let length = 0;
  for (const { value } of entries) length += 2 + value.length;
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const { type, value } of entries) {
    if (value.length > LONGEST_VALUE)
      throw new RangeError(`user data of ${value.length} bytes: the maximum is ${LONGEST_VALUE}`);
    bytes[offset] = type;
    bytes[offset + 1] = value.length;
    bytes.set(value, offset + 2);
    offset += 2 + value.length;
  }
  return bytes;
}

/** A comment; if it is longer than `nft` accepts (128 bytes), it is cut after a whole character. */
export function commentEntry(text: string, type = COMMENT): UserdataEntry {
  return { type, value: encodeComment(text, type).subarray(2) };
}

/** The user data of an object with nothing but a comment. */
export function encodeComment(text: string, type = COMMENT): Uint8Array {
  const written = writeText(text);
  const bytes = new Uint8Array(written + 3);
  bytes[0] = type;
  bytes[1] = written + 1;
  for (let index = 0; index < written; index++) bytes[index + 2] = commentText[index] ?? 0;
  return bytes;
}

function writeText(text: string): number {
  const plain = text.length <= LONGEST_COMMENT ? putText(commentText, 0, text) : undefined;
  return plain ?? encoder.encodeInto(text, commentText).written;
}

/** A 32-bit number in host byte order. */
export function numberEntry(type: number, value: number): UserdataEntry {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return { type, value: bytes };
}

export function findComment(userdata: Uint8Array, type = COMMENT): string | undefined {
  const value = findEntry(userdata, type);
  if (value === undefined) return undefined;
  const zero = value.indexOf(0);
  return decoder.decode(zero === -1 ? value : value.subarray(0, zero));
}

/** The value of the first entry of that type; a truncated entry ends the search. */
export function findEntry(userdata: Uint8Array, type: number): Uint8Array | undefined {
  let offset = 0;
  while (offset + 2 <= userdata.length) {
    const end = offset + 2 + (userdata[offset + 1] ?? 0);
    if (end > userdata.length) return undefined;
    if (userdata[offset] === type) return userdata.subarray(offset + 2, end);
    offset = end;
  }
  return undefined;
}
