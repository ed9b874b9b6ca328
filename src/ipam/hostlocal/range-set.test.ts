import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { address } from "../../../test/support/ipam.ts";
import { formatAddress } from "../../ip/address.ts";
import { decodeRangeSets } from "./decode-ranges.ts";
import { candidates, formatSet, type RangeSet, rangeContaining } from "./range-set.ts";

function setOf(...ranges: readonly object[]): RangeSet {
  const [set] = decodeRangeSets({ ipam: { ranges: [ranges] } }, "1.0.0");
  return set ?? [];
}

function given(set: RangeSet, lastGiven?: string): readonly string[] {
  const walk = candidates(set, lastGiven === undefined ? undefined : address(lastGiven));
  return Array.from(walk, (candidate) => formatAddress(candidate.address));
}

const SMALL = setOf({ subnet: "192.168.1.0/29" });
const LAST_PARTS = (set: RangeSet, lastGiven?: string) => given(set, lastGiven).map((text) => text.split(".")[3]);

describe("candidates()", () => {
  test.each([
    ["from the beginning", undefined, "2 3 4 5 6"],
    ["from the end", "192.168.1.6", "2 3 4 5 6"],
    ["from the middle", "192.168.1.3", "4 5 6 2 3"],
    ["from the beginning if the last one is outside the set", "192.168.9.3", "2 3 4 5 6"],
    ["after the gateway", "192.168.1.1", "2 3 4 5 6"],
  ])("returns each address once %s, without gateway and broadcast", (_, last, expected) => {
    expect(LAST_PARTS(SMALL, last).join(" ")).toBe(expected);
  });

  const three = setOf({ subnet: "10.0.0.0/30" }, { subnet: "10.0.1.0/30" }, { subnet: "10.0.2.0/30" });
  test.each([
    ["begins with the first range", undefined, ["10.0.0.2", "10.0.1.2", "10.0.2.2"]],
    ["moves on at the end of a range", "10.0.0.2", ["10.0.1.2", "10.0.2.2", "10.0.0.2"]],
    ["returns to the first range", "10.0.2.2", ["10.0.0.2", "10.0.1.2", "10.0.2.2"]],
  ])("over several ranges %s", (_, last, expected) => {
    expect(given(three, last)).toEqual(expected);
  });

  test("includes the network address and the broadcast address if the range does", () => {
    const set = setOf({ subnet: "10.0.0.0/30", rangeStart: "10.0.0.0", rangeEnd: "10.0.0.3" });
    expect(given(set, "10.0.0.3")).toEqual(["10.0.0.0", "10.0.0.2", "10.0.0.3"]);
  });

  test("enumerates a large IPv6 subnet lazily", () => {
    const walk = candidates(setOf({ subnet: "2001:db8:1::0/64" }), undefined);
    expect([walk.next().value, walk.next().value].map((one) => one && formatAddress(one.address))).toEqual([
      "2001:db8:1::2",
      "2001:db8:1::3",
    ]);
  });

  test("returns each address of the set exactly once, wherever it starts", () => {
    const set = setOf(
      { subnet: "10.0.0.0/28", rangeStart: "10.0.0.5" },
      { subnet: "10.0.1.0/29", gateway: "10.0.1.4" },
    );
    const all = given(set).toSorted();
    fc.assert(
      fc.property(fc.constantFrom(...all), (last) => {
        const walk = given(set, last);
        expect(walk.toSorted()).toEqual(all);
        expect(walk.at(-1)).toBe(last);
      }),
    );
  });
});

describe("rangeContaining()", () => {
  const set = setOf({ subnet: "10.0.1.0/24", rangeStart: "10.0.1.5", rangeEnd: "10.0.1.9" }, { subnet: "10.0.2.0/24" });
  test.each([
    ["10.0.1.5", true],
    ["10.0.1.9", true],
    ["10.0.2.7", true],
    ["10.0.1.4", false],
    ["10.0.1.10", false],
    ["10.0.3.1", false],
    ["10.0.2.255", false],
    ["fd00::a00:105", false],
  ])("of %s is there: %p", (text, expected) => {
    expect(rangeContaining(set, address(text)) !== undefined).toBe(expected);
  });

  test("works in IPv6 up to the very last address", () => {
    const ipv6 = setOf({ subnet: "2001:db8::/120" });
    expect(formatSet(ipv6)).toBe("2001:db8::1-2001:db8::ff");
    expect(rangeContaining(ipv6, address("2001:db8::ff"))).toBeDefined();
    expect(rangeContaining(ipv6, address("2001:db8::100"))).toBeUndefined();
  });
});
