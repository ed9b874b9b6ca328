import * as libc from "./libc.ts";

const LONGEST = 4096;

/** Where a symbolic link leads; "" where there is none, or it cannot be read. */
export function linkTarget(path: string): string {
  const buffer = new Uint8Array(LONGEST);
  const length = libc.readlink(path, buffer, buffer.length);
  return new TextDecoder().decode(buffer.subarray(0, Math.max(length, 0)));
}
