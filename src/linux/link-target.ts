import * as libc from "./libc.ts";

const LONGEST = 4096;
let buffer: Uint8Array | undefined;

/** Where a symbolic link leads; "" where there is none, or it cannot be read. */
export function linkTarget(path: string): string {
  buffer ??= new Uint8Array(LONGEST);
  const length = libc.readlink(path, buffer, LONGEST);
  return textOf(buffer.subarray(0, Math.max(length, 0)));
}

/** Byte by byte: for what is compared, and not shown. */
export function textOf(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}
