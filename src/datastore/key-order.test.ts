import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { compareKeys, prefixEnd } from "./key-order.ts";

const text = fc.string({ unit: "binary", maxLength: 6 });

describe("compareKeys()", () => {
  test("orders like the UTF-8 bytes", () => {
    fc.assert(
      fc.property(text, text, (left, right) => {
        expect(Math.sign(compareKeys(left, right))).toBe(Buffer.compare(Buffer.from(left), Buffer.from(right)));
      }),
    );
  });
});

describe("prefixEnd()", () => {
  test("is after every text with the prefix, and before every other text that follows", () => {
    fc.assert(
      fc.property(text, text, (prefix, other) => {
        const end = prefixEnd(prefix);
        const inside = compareKeys(other, prefix) >= 0 && (end === undefined || compareKeys(other, end) < 0);

        expect(inside).toBe(other.startsWith(prefix));
        expect(end === undefined || compareKeys(prefix + other, end) < 0).toBe(true);
      }),
    );
  });

  test.each([
    ["/a/", "/a0"],
    ["\u{d7ff}", "\u{e000}"],
    ["a\u{10ffff}", "b"],
  ])("%j ends before %j", (prefix, end) => {
    expect(prefixEnd(prefix)).toBe(end);
  });

  test("returns undefined if nothing follows", () => {
    expect(prefixEnd("")).toBeUndefined();
    expect(prefixEnd("\u{10ffff}")).toBeUndefined();
  });
});
