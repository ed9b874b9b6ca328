import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { LineBuffer } from "./line-buffer.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);

describe("LineBuffer", () => {
  test("finds the lines, however the stream is cut", () => {
    const line = fc.string({ unit: "binary", maxLength: 300 }).map((text) => text.replaceAll("\n", "").toWellFormed());
    fc.assert(
      fc.property(fc.array(line), fc.array(fc.nat(40)), (lines, cuts) => {
        const stream = bytesOf(lines.map((each) => `${each}\n`).join(""));
        const buffer = new LineBuffer(2_000);
        const found: string[] = [];
        const take = (text: string) => found.push(text) > 0;
        let from = 0;
        for (const cut of cuts) {
          expect(buffer.add(stream.subarray(from, from + cut), take)).toBe(true);
          from += cut;
        }
        expect(buffer.add(stream.subarray(from), take)).toBe(true);
        expect(found).toEqual(lines);
      }),
    );
  });

  test.each([1, 2, 3, 7, 100])("keeps none of the bytes that it is given, in pieces of %d", (size) => {
    const bytes = bytesOf("first\n\nthird größe\nrest");
    const buffer = new LineBuffer(20);
    const found: string[] = [];
    for (let from = 0; from < bytes.length; from += size) {
      const piece = bytes.slice(from, from + size);
      buffer.add(piece, (line) => found.push(line) > 0);
      piece.fill(0);
    }
    expect(found).toEqual(["first", "", "third größe"]);
  });

  test("refuses a line that is longer than the limit, also in parts", () => {
    const buffer = new LineBuffer(1_000);
    const take = () => true;
    expect(new LineBuffer(1_000).add(bytesOf(`${"x".repeat(1_000)}\n`), take)).toBe(true);
    expect(new LineBuffer(1_000).add(bytesOf("x".repeat(1_001)), take)).toBe(false);
    const parts = Array.from({ length: 11 }, () => buffer.add(bytesOf("x".repeat(100)), take));
    expect(parts).toEqual([...Array.from({ length: 10 }, () => true), false]);
  });

  test("stops at the line after which nothing more is wanted", () => {
    const found: string[] = [];
    expect(new LineBuffer(1_000).add(bytesOf("a\nb\nc\n"), (line) => found.push(line) < 2)).toBe(false);
    expect(found).toEqual(["a", "b"]);
  });
});
