/**
 * Writes a file anew, in pieces of 64 KB. The page cache keeps such a file in
 * pieces of that size, as large as the kernel maps them at a page fault, and a
 * process starts half a millisecond sooner (docs/decisions/written-in-pieces.md).
 */
import { closeSync, openSync, readFileSync, renameSync, rmSync, statSync, writeSync } from "node:fs";

const PIECE = 64 * 1024;

export function writeInPieces(path: string): void {
  const unfinished = `${path}.pieces`;
  try {
    writeAll(unfinished, readFileSync(path), statSync(path).mode);
    renameSync(unfinished, path);
  } finally {
    rmSync(unfinished, { force: true });
  }
}

function writeAll(path: string, bytes: Buffer, mode: number): void {
  const file = openSync(path, "w", mode);
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at, Math.min(PIECE, bytes.length - at));
  } finally {
    closeSync(file);
  }
}
