import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { firstBytes, numberAt, putNumber, putText } from "./bytes.ts";

describe("numbers", () => {
  test("are put and read as the kernel keeps them, and touch nothing beside them", () => {
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
  test("puts plain ASCII where it is told to, and answers where it ends", () => {
    const bytes = new Uint8Array(8);

    expect(putText(bytes, 2, "abc")).toBe(5);
    expect([...bytes]).toEqual([0, 0, 97, 98, 99, 0, 0, 0]);
  });

  test.each([
    ["a letter beyond ASCII", 0, "büro"],
    ["half of a pair", 0, "\ud83d"],
    ["more than there is room for", 5, "abcd"],
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
