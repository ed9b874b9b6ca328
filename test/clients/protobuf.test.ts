import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { decodeMessage, encodeMap, encodeMessage } from "../support/protobuf.ts";

describe("encodeMessage()", () => {
  test("encodes the example of the format's documentation", () => {
    expect(encodeMessage([[1, 150]])).toEqual(Uint8Array.of(0x08, 0x96, 0x01));
    expect(encodeMessage([[2, "testing"]])).toEqual(
      Uint8Array.of(0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67),
    );
  });

  test("refuses numbers that it cannot encode exactly", () => {
    for (const number of [-1, 0.5, 2 ** 53]) expect(() => encodeMessage([[1, number]])).toThrow(RangeError);
  });
});

describe("decodeMessage()", () => {
  test("decodes what was encoded", () => {
    const numbers = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
    fc.assert(
      fc.property(numbers, fc.string(), fc.dictionary(fc.string(), fc.string()), (number, text, map) => {
        const inner = encodeMessage([[20, number]]);
        const message = decodeMessage(encodeMessage([[1, number], [3, text], [4, inner], ...encodeMap(5, map)]));

        expect(message.number(1)).toBe(number);
        expect(message.text(3)).toBe(text);
        expect(message.message(4).number(20)).toBe(number);
        expect(message.map(5)).toEqual(new Map(Object.entries(map)));
      }),
    );
  });

  test("decodes absent fields as empty and skips fixed-width ones", () => {
    const message = decodeMessage(Uint8Array.of(0x0d, 1, 2, 3, 4, 0x10, 7));

    expect([message.number(2), message.number(3), message.text(3), message.messages(3)]).toEqual([7, 0, "", []]);
  });

  test("refuses truncated input", () => {
    for (const bytes of [[0x08], [0x12, 5, 1], [0x0d, 1], [0x0b]]) {
      expect(() => decodeMessage(Uint8Array.from(bytes))).toThrow("Cannot read protobuf");
    }
  });
});
