import { addressOf, CURRENT_FOLDER, pathBytes, systemCall } from "../system-call.ts";

/** Puts where a symbolic link leads. Answers how many bytes that took; 0 where there is none, or it cannot be read. */
export function putLinkTarget(bytes: Uint8Array, at: number, path: string): number {
  const length = systemCall("readlinkat", CURRENT_FOLDER, pathBytes(path), addressOf(bytes) + at, bytes.length - at);
  return Math.max(length, 0);
}
