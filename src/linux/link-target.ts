import { addressOf, CURRENT_FOLDER, pathBytes, systemCall } from "../system-call.ts";

/** Writes the target of a symbolic link. Returns its length in bytes; 0 if it does not exist or cannot be read. */
export function putLinkTarget(bytes: Uint8Array, at: number, path: string): number {
  const length = systemCall("readlinkat", CURRENT_FOLDER, pathBytes(path), addressOf(bytes) + at, bytes.length - at);
  return Math.max(length, 0);
}
