/** An executable whose code the kernel can map in large pages. What holds the kernel to it: docs/decisions/large-pages.md. */
import { describe, expect, test } from "bun:test";
import { closeSync, openSync, readSync } from "node:fs";
import { withCodeAligned } from "../../scripts/large-pages.ts";
import { builtProgram } from "../support/run-plugin.ts";

const LARGE_PAGE = 0x200000;
const FIXED = 2;
const ANYWHERE = 3;

interface Load {
  readonly flags: number;
  readonly offset: number;
  readonly address: number;
}

const READ = 4;
const READ_AND_EXECUTE = 5;
const READ_AND_WRITE = 6;

/** Data, code and more data, as a linker puts them: one after the other in the file, further apart in memory. */
const LOADS: readonly Load[] = [
  { flags: READ, offset: 0, address: 0x200000 },
  { flags: READ_AND_EXECUTE, offset: 0x1600, address: 0x20a600 },
  { flags: READ_AND_WRITE, offset: 0x2240, address: 0x20c240 },
];
const SECTIONS_AT = 0x3000;
const SECTION_OFFSETS = [0, 0x800, 0x1600, 0x2240];
const TEXTS: Readonly<Record<number, string>> = { 2048: "constants", 5632: "code", 8768: "variables" };

function executableOf(type: number): Buffer {
  const bytes = Buffer.alloc(SECTIONS_AT + 64 * SECTION_OFFSETS.length);
  bytes.writeUInt16LE(type, 16);
  bytes.writeBigUInt64LE(64n, 32);
  bytes.writeBigUInt64LE(BigInt(SECTIONS_AT), 40);
  bytes.writeUInt16LE(56, 54);
  bytes.writeUInt16LE(LOADS.length, 56);
  bytes.writeUInt16LE(64, 58);
  bytes.writeUInt16LE(SECTION_OFFSETS.length, 60);
  for (const [index, { flags, offset, address }] of LOADS.entries()) {
    const at = 64 + 56 * index;
    bytes.writeUInt32LE(1, at);
    bytes.writeUInt32LE(flags, at + 4);
    bytes.writeBigUInt64LE(BigInt(offset), at + 8);
    bytes.writeBigUInt64LE(BigInt(address), at + 16);
  }
  for (const [index, offset] of SECTION_OFFSETS.entries()) {
    bytes.writeBigUInt64LE(BigInt(offset), SECTIONS_AT + 64 * index + 24);
  }
  for (const [at, text] of Object.entries(TEXTS)) bytes.write(text, Number(at));
  return bytes;
}

function loadsOf(bytes: Buffer): readonly Load[] {
  const first = Number(bytes.readBigUInt64LE(32));
  return Array.from({ length: bytes.readUInt16LE(56) }, (_, index) => first + 56 * index)
    .filter((at) => bytes.readUInt32LE(at) === 1)
    .map((at) => ({
      flags: bytes.readUInt32LE(at + 4),
      offset: Number(bytes.readBigUInt64LE(at + 8)),
      address: Number(bytes.readBigUInt64LE(at + 16)),
    }));
}

function sectionOffsetsOf(bytes: Buffer): readonly number[] {
  const first = Number(bytes.readBigUInt64LE(40));
  return Array.from({ length: bytes.readUInt16LE(60) }, (_, index) =>
    Number(bytes.readBigUInt64LE(first + 64 * index + 24)),
  );
}

const textAt = (bytes: Buffer, at: number) => bytes.toString("latin1", at, bytes.indexOf(0, at));

describe("the layout for large pages", () => {
  const aligned = withCodeAligned(executableOf(FIXED));
  const gap = 0x9000;

  test("puts the code at the place in the file that it has in memory, within a large page", () => {
    const [constants, code, variables] = loadsOf(aligned);
    expect(code).toEqual({ flags: READ_AND_EXECUTE, offset: 0x1600 + gap, address: 0x20a600 });
    expect(constants).toEqual(LOADS[0] as Load);
    expect(variables).toEqual({ flags: READ_AND_WRITE, offset: 0x2240 + gap, address: 0x20c240 });
  });

  test("tells of everything where it now stands", () => {
    const offsets = sectionOffsetsOf(aligned);
    expect(offsets).toEqual([0, 0x800, 0x1600 + gap, 0x2240 + gap]);
    expect(offsets.slice(1).map((at) => textAt(aligned, at))).toEqual(Object.values(TEXTS));
  });

  test("is the same when it is made again", () => {
    expect(withCodeAligned(aligned).equals(aligned)).toBe(true);
  });

  test("leaves alone what the system places where it likes", () => {
    const executable = executableOf(ANYWHERE);
    expect(withCodeAligned(executable).equals(executable)).toBe(true);
  });

  test("is that of the built product", () => {
    const [code] = loadsOf(beginOf(builtProgram())).filter(({ flags }) => flags === READ_AND_EXECUTE);
    expect(code).toBeDefined();
    expect(((code?.address ?? 0) - (code?.offset ?? 0)) % LARGE_PAGE).toBe(0);
  });
});

/** The first page: a product is large. */
function beginOf(path: string): Buffer {
  const bytes = Buffer.alloc(4096);
  const file = openSync(path, "r");
  try {
    readSync(file, bytes);
    return bytes;
  } finally {
    closeSync(file);
  }
}
