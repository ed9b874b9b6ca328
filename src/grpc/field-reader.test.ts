import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { FieldReader } from "./field-reader.ts";
import { delimited, message, varint } from "./protobuf.ts";

describe("FieldReader", () => {
  test("reads numbers, text and messages in their order", () => {
    const numbers = fc.bigInt({ min: 0n, max: 2n ** 53n - 1n });
    fc.assert(
      fc.property(
        numbers,
        fc.string({ unit: "binary" }),
        fc.integer({ min: 1, max: 2 ** 28 - 1 }),
        (number, text, field) => {
          const reader = FieldReader.of(message(varint(3, number), delimited(field, message(delimited(2, text)))));

          expect([reader.next(), reader.number]).toEqual([3, Number(number)]);
          expect(reader.next()).toBe(field);
          const inner = reader.message();
          expect([inner.next(), inner.text(), inner.next()]).toEqual([2, text, 0]);
          expect(reader.next()).toBe(0);
        },
      ),
    );
  });

  test("skips fields of a fixed size", () => {
    const fixed = Uint8Array.of((1 << 3) | 1, 1, 2, 3, 4, 5, 6, 7, 8, (2 << 3) | 5, 1, 2, 3, 4);
    const reader = FieldReader.of(message(fixed, varint(3, 7n)));

    expect([reader.next(), reader.text(), reader.next(), reader.next(), reader.number]).toEqual([1, "", 2, 3, 7]);
  });

  test.each([
    ["a number", varint(1, 300n).subarray(0, 2)],
    ["text", delimited(1, "whole").subarray(0, 4)],
    ["a length beyond the end of the inner message", delimited(1, delimited(2, "inner").subarray(0, 3))],
    ["eight bytes", Uint8Array.of((1 << 3) | 1, 1, 2)],
    ["an unknown type", Uint8Array.of((1 << 3) | 3)],
    ["a number of eleven bytes", new Uint8Array(12).fill(0x80)],
  ])("rejects a message that is cut off: %s", (_, bytes) => {
    const readAll = (reader: FieldReader): void => {
      while (reader.next() !== 0) if (reader.text() !== "") readAll(reader.message());
    };

    expect(() => readAll(FieldReader.of(bytes))).toThrow(RangeError);
  });
});
