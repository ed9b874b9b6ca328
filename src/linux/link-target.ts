import { addressOf, CURRENT_FOLDER, pathBytes, systemCall } from "../system-call.ts";

const LONGEST = 256;

/** Where a symbolic link leads, as bytes to compare; empty where there is none, or it cannot be read. */
export function linkTarget(path: string): Uint8Array {
  const buffer = new Uint8Array(LONGEST);
  const length = systemCall("readlinkat", CURRENT_FOLDER, pathBytes(path), addressOf(buffer), LONGEST);
  return buffer.subarray(0, Math.max(length, 0));
}
