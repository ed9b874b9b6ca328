import * as libc from "./libc.ts";

const LONGEST = 4096;
let buffer: Uint8Array | undefined;

/** Where a symbolic link leads; "" where there is none, or it cannot be read. */
export function linkTarget(path: string): string {
  buffer ??= new Uint8Array(LONGEST);
  const length = libc.readlink(path, buffer, LONGEST);
  // Byte by byte: what is read here is compared, and seldom shown.
  return length > 0 ? String.fromCharCode(...buffer.subarray(0, length)) : "";
}
