import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { parseAddress } from "./address.ts";
import { mergedRanges } from "./merged-ranges.ts";
import { parsePrefixOrAddress, prefixContains } from "./prefix.ts";
import { formatRange, rangeContains } from "./range.ts";

function rangesOf(texts: readonly string[], family: 4 | 6 = 4): readonly string[] {
  const prefixes = texts.flatMap((text) => parsePrefixOrAddress(text) ?? []);
  return mergedRanges(prefixes, family).map(formatRange);
}

describe("mergedRanges()", () => {
  test.each([
    { texts: ["10.0.0.0/24", "10.0.0.128/25"], ranges: ["10.0.0.0-10.0.0.255"], name: "a network in another" },
    { texts: ["10.0.1.0/24", "10.0.0.0/24"], ranges: ["10.0.0.0-10.0.1.255"], name: "networks that touch" },
    {
      texts: ["10.0.0.0/24", "10.0.2.0/24"],
      ranges: ["10.0.0.0-10.0.0.255", "10.0.2.0-10.0.2.255"],
      name: "networks apart",
    },
    { texts: ["0.0.0.0/0", "10.0.0.1"], ranges: ["0.0.0.0-255.255.255.255"], name: "all addresses" },
    { texts: ["255.255.255.255", "255.0.0.0/8"], ranges: ["255.0.0.0-255.255.255.255"], name: "the last address" },
    { texts: ["fd00::/64"], ranges: [], name: "another family" },
  ])("merges $name", ({ texts, ranges }) => {
    expect(rangesOf(texts)).toEqual(ranges);
  });

  test("reaches the end of IPv6", () => {
    expect(rangesOf(["ff00::/8", "::/0"], 6)).toEqual(["::-ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"]);
  });

  test("contains exactly the addresses of the networks, in ranges with gaps between them", () => {
    const byte = fc.integer({ min: 0, max: 7 });
    const prefix = fc.tuple(byte, fc.integer({ min: 28, max: 32 })).map(([last, length]) => {
      const start = (last >> (32 - length)) << (32 - length);
      return `10.0.0.${start}/${length}`;
    });
    fc.assert(
      fc.property(fc.array(prefix, { maxLength: 6 }), (texts) => {
        const prefixes = texts.flatMap((text) => parsePrefixOrAddress(text) ?? []);
        const ranges = mergedRanges(prefixes, 4);
        for (let number = 0; number < 20; number++) {
          const address = parseAddress(`10.0.0.${number}`);
          if (address === undefined) continue;
          const isInRange = ranges.some((range) => rangeContains(range, address));
          expect(isInRange).toBe(prefixes.some((each) => prefixContains(each, address)));
        }
        for (const [index, { first }] of ranges.entries()) {
          const before = ranges[index - 1];
          if (before !== undefined) expect(Number(first.value - before.last.value)).toBeGreaterThan(1);
        }
      }),
    );
  });
});
