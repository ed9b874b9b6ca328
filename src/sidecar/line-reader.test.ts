import { describe, expect, test } from "bun:test";
import { LineReader } from "./line-reader.ts";

describe("LineReader", () => {
  const bytes = Buffer.from("first\n\nthird größe\nrest");

  test.each([1, 2, 3, 7, bytes.length])("finds the lines in pieces of %d bytes that are overwritten later", (size) => {
    const reader = new LineReader(20);
    const lines: string[] = [];
    for (let start = 0; start < bytes.length; start += size) {
      const piece = new Uint8Array(bytes.subarray(start, start + size));
      lines.push(...reader.read(piece));
      piece.fill(0);
    }

    expect(lines).toEqual(["first", "", "third größe"]);
  });

  test("rejects a line that is too long, before its end has arrived", () => {
    const reader = new LineReader(4);
    expect(reader.read(Buffer.from("four\n4444"))).toEqual(["four"]);

    expect(() => reader.read(Buffer.from("5"))).toThrow(RangeError);
  });
});
