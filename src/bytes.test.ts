import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { firstBytes, numberAt, putNumber, putText } from "./bytes.ts";

describe("numbers", () => {
  test("are written and read in the kernel's byte order, and change no other bytes", () => {
    fc.assert(
      fc.property(fc.nat(0xffff_ffff), fc.nat(20), (value, at) => {
        const bytes = new Uint8Array(24).fill(0xaa);
        putNumber(bytes, at, value);
        const expected = new Uint8Array(24).fill(0xaa);
        new DataView(expected.buffer).setUint32(at, value, true);

        expect(bytes).toEqual(expected);
        expect(numberAt(bytes, at)).toBe(value);
      }),
    );
  });
});

describe("putText()", () => {
  test("writes plain ASCII at an offset, and returns the offset of its end", () => {
    const bytes = new Uint8Array(8);

    expect(putText(bytes, 2, "abc")).toBe(5);
    expect([...bytes]).toEqual([0, 0, 97, 98, 99, 0, 0, 0]);
  });

  test.each([
    ["a letter outside ASCII", 0, "büro"],
    ["half of a surrogate pair", 0, "\ud83d"],
    ["a text that does not fit", 5, "abcd"],
  ])("refuses %s", (_, at, text) => {
    expect(putText(new Uint8Array(8), at, text)).toBeUndefined();
  });
});

test("firstBytes() copies", () => {
  const bytes = new Uint8Array([1, 2, 3]);
  const first = firstBytes(bytes, 2);
  bytes.fill(9);

  expect([...first]).toEqual([1, 2]);
});
