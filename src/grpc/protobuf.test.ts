import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { delimited, Fields, message, varint } from "./protobuf.ts";

const LARGEST = 2n ** 63n - 1n;

describe("Fields", () => {
  test("reads back what was written, numbers of 64 bits and any text", () => {
    const anyNumber = fc.bigInt({ min: -(2n ** 63n), max: LARGEST });
    fc.assert(
      fc.property(anyNumber, fc.array(fc.string({ unit: "binary" })), (number, texts) => {
        const fields = new Fields(
          message(varint(3, number), ...texts.map((text) => delimited(200, delimited(1, text)))),
        );

        expect(fields.numberText(3)).toBe(String(number));
        expect(fields.all(200).map((each) => each.text(1))).toEqual(texts);
      }),
    );
  });

  test("reads absent fields as zero, empty and none", () => {
    const fields = new Fields(message());

    expect([fields.number(1), fields.text(1), fields.flag(1), fields.one(1), fields.all(1)]).toEqual([
      0n,
      "",
      false,
      undefined,
      [],
    ]);
  });

  test("skips fixed-size fields, and rejects truncated input", () => {
    const fixed = Uint8Array.of((1 << 3) | 1, 1, 2, 3, 4, 5, 6, 7, 8, (2 << 3) | 5, 1, 2, 3, 4);
    expect(new Fields(message(fixed, varint(3, 7n))).number(3)).toBe(7n);
    expect(() => new Fields(delimited(1, "whole").subarray(0, 4))).toThrow(RangeError);
    expect(() => new Fields(Uint8Array.of(8, 0x80))).toThrow(RangeError);
  });
});
