/** What is found at a path, for installations: they replace and remove only what they have written. For rare work: imports node:fs. */
import { closeSync, fstatSync, lstatSync, openSync, readlinkSync, readSync } from "node:fs";

export type FileState =
  | { readonly kind: "nothing" }
  | { readonly kind: "file"; readonly digest: string }
  | { readonly kind: "link"; readonly target: string }
  | { readonly kind: "other" };

const CHUNK = 1 << 20;

export function digestOfBytes(bytes: string | Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
}

/** Without the whole file in memory. */
export function digestOfFile(path: string): string {
  const hasher = new Bun.CryptoHasher("sha256");
  const file = openSync(path, "r");
  try {
    const buffer = new Uint8Array(Math.min(fstatSync(file).size + 1, CHUNK));
    for (let length = readSync(file, buffer); length > 0; length = readSync(file, buffer)) {
      hasher.update(buffer.subarray(0, length));
    }
  } finally {
    closeSync(file);
  }
  return hasher.digest("hex");
}

export function stateAt(path: string): FileState {
  const status = lstatSync(path, { throwIfNoEntry: false });
  if (status === undefined) return { kind: "nothing" };
  if (status.isSymbolicLink()) return { kind: "link", target: readlinkSync(path) };
  if (status.isFile()) return { kind: "file", digest: digestOfFile(path) };
  return { kind: "other" };
}

export function isSameState(left: FileState, right: FileState): boolean {
  if (left.kind === "link") return right.kind === "link" && left.target === right.target;
  if (left.kind === "file") return right.kind === "file" && left.digest === right.digest;
  return left.kind === right.kind;
}
