import { describe, expect, test } from "bun:test";
import type { Pool } from "../../api/addresses.ts";
import { addressesIn, blockWords, fillOf, forecastWords, isFullSoon, sharesOf, shortAddress } from "./pool-words.ts";

const DAY = 86_400_000;
const POOL: Pool = {
  name: "blue",
  cidr: "10.0.0.0/24",
  blockSize: 26,
  disabled: false,
  nodeSelector: "all()",
  encapsulation: "none",
  counts: { size: "256", used: 100, borrowed: 5, reserved: 10, resting: 6, leaked: 3, kept: 4, blocks: 3 },
};

describe("sharesOf()", () => {
  test("the parts are the whole pool", () => {
    const shares = sharesOf(POOL);

    expect(shares.map(({ use, count }) => [use, count])).toEqual([
      ["u", 88],
      ["b", 5],
      ["k", 4],
      ["R", 6],
      ["r", 10],
      ["l", 3],
      [".", 140],
    ]);
    expect(shares.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
  });

  test("counts pools that are larger than a number", () => {
    const counts = { ...POOL.counts, size: "1208925819614629174706176" };

    expect(sharesOf({ ...POOL, counts }).at(-1)).toMatchObject({ use: ".", share: 1 });
  });
});

describe("forecastWords()", () => {
  const inDays = (days: number): Pool => ({
    ...POOL,
    forecast: { exhausted: days * DAY + 1, perDay: 34, fromDays: 14 },
  });

  test.each([
    [0, "full within a day"],
    [1, "full in 1 day"],
    [11, "full in 11 days"],
    [1_000, "full in 2 years"],
  ])("in %i days: %p", (days, words) => {
    expect(forecastWords(inDays(days), 0)).toStartWith(words);
  });

  test("has none if too little is known", () => {
    expect(forecastWords(POOL, 0)).toBeUndefined();
    expect([isFullSoon(POOL, 0), isFullSoon(inDays(20), 0), isFullSoon(inDays(40), 0)]).toEqual([false, true, false]);
  });
});

describe("blocks", () => {
  test("have an address for each letter", () => {
    expect(addressesIn({ cidr: "10.0.0.64/30", free: 2, use: "u..l" })).toEqual([
      "10.0.0.64",
      "10.0.0.65",
      "10.0.0.66",
      "10.0.0.67",
    ]);
    expect(addressesIn({ cidr: "fd00::/127", free: 1, use: "u." })).toEqual(["fd00::", "fd00::1"]);
    expect(addressesIn({ cidr: "10.0.0.0/8", free: 1 })).toEqual([]);
  });

  test.each([
    ["10.0.0.64", ".64"],
    ["fd00::1f", ":1f"],
    ["fd00::", ":0"],
  ])("%p is called %p in its block", (address, short) => {
    expect(shortAddress(address)).toBe(short);
  });

  test("count what is used in them", () => {
    expect(fillOf({ cidr: "10.0.0.0/29", free: 2, use: "ubltRr.." })).toEqual({
      size: 8,
      used: 4,
      leaked: 1,
      borrowed: 1,
    });
    expect(fillOf({ cidr: "10.0.0.0/16", free: 65_000 })).toMatchObject({ size: 65_536, used: 536 });
    expect(blockWords({ cidr: "10.0.0.0/30", node: "node-1", free: 1, use: "uul." })).toBe(
      "10.0.0.0/30, node-1: 3 of 4 used (75 %), 1 leaked",
    );
  });
});
