/**
 * Lays a finished executable out so that the kernel maps its code in large pages
 * (docs/decisions/large-pages.md): a process begins with a hundred page faults
 * less, half a millisecond of every call.
 *
 * It takes two things, and a linker gives neither:
 *
 *   the same place within 2 MB     file    |------a·······|···b···········|
 *   in the file and in memory      memory  |------a·······|···b···········|
 *
 *   a file that was written in large pieces: the page cache keeps it in such pieces
 */
import { closeSync, openSync, readFileSync, renameSync, rmSync, statSync, writeSync } from "node:fs";

const LARGE_PAGE = 2 * 1024 * 1024;
/** Each a write of its own. One large page would do. */
const PIECE = 2 * LARGE_PAGE;

/** The fields of ELF, for 64 bits and the lower byte first. */
const FIXED_ADDRESSES = 2;
const TYPE = 16;
/** Where the header tells the place, the size of an entry and the number of entries of its two tables. */
const PROGRAMS = { at: 32, size: 54, count: 56 };
const SECTIONS = { at: 40, size: 58, count: 60 };
const PROGRAM = { type: 0, flags: 4, offset: 8, address: 16 };
const SECTION = { offset: 24 };
const LOADED = 1;
const EXECUTABLE = 1;

export function layOutForLargePages(path: string): void {
  const unfinished = `${path}.large`;
  try {
    writeInPieces(unfinished, withCodeAligned(readFileSync(path)), statSync(path).mode);
    renameSync(unfinished, path);
  } finally {
    rmSync(unfinished, { force: true });
  }
}

/** Everything from the code on, moved up in the file. What a linker leaves to the system to place stays as it is. */
export function withCodeAligned(executable: Buffer): Buffer {
  const code = codeOf(executable);
  if (code === undefined) return executable;
  const gap = (code.address - code.offset) % LARGE_PAGE;
  const moved = Buffer.concat([
    executable.subarray(0, code.offset),
    Buffer.alloc(gap),
    executable.subarray(code.offset),
  ]);

  const sectionsAt = numberAt(executable, SECTIONS.at);
  if (sectionsAt >= code.offset) putNumber(moved, SECTIONS.at, sectionsAt + gap);
  const offsets = [
    ...entriesOf(executable, PROGRAMS).map((at) => at + PROGRAM.offset),
    ...entriesOf(moved, SECTIONS).map((at) => at + SECTION.offset),
  ];
  for (const at of offsets) {
    const offset = numberAt(moved, at);
    if (offset >= code.offset) putNumber(moved, at, offset + gap);
  }
  return moved;
}

/** Where the code stands in the file, and where it is to stand in memory. */
function codeOf(executable: Buffer): { readonly offset: number; readonly address: number } | undefined {
  if (executable.readUInt16LE(TYPE) !== FIXED_ADDRESSES) return undefined;
  const at = entriesOf(executable, PROGRAMS).find(
    (program) =>
      executable.readUInt32LE(program + PROGRAM.type) === LOADED &&
      (executable.readUInt32LE(program + PROGRAM.flags) & EXECUTABLE) !== 0,
  );
  if (at === undefined) return undefined;
  return { offset: numberAt(executable, at + PROGRAM.offset), address: numberAt(executable, at + PROGRAM.address) };
}

/** Where each entry of the table stands. */
function entriesOf(executable: Buffer, { at, size, count }: typeof PROGRAMS): readonly number[] {
  const [first, step] = [numberAt(executable, at), executable.readUInt16LE(size)];
  return Array.from({ length: executable.readUInt16LE(count) }, (_, index) => first + index * step);
}

const numberAt = (bytes: Buffer, at: number): number => Number(bytes.readBigUInt64LE(at));
const putNumber = (bytes: Buffer, at: number, value: number) => bytes.writeBigUInt64LE(BigInt(value), at);

function writeInPieces(path: string, bytes: Buffer, mode: number): void {
  const file = openSync(path, "w", mode);
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at, Math.min(PIECE, bytes.length - at));
  } finally {
    closeSync(file);
  }
}
