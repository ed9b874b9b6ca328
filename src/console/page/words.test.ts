import { describe, expect, test } from "bun:test";
import {
  ageWords,
  agoWords,
  clockWords,
  dateWords,
  exactTime,
  numberWords,
  shareWords,
  sizeWords,
  timeWords,
} from "./words.ts";

describe("words for people", () => {
  test.each([
    [0, "now"],
    [1_999, "now"],
    [8_000, "8 s"],
    [200_000, "3 min"],
    [7_300_000, "2 h"],
    [400_000_000, "4 d"],
  ])("an age of %i ms is %p", (milliseconds, words) => {
    expect(ageWords(milliseconds)).toBe(words);
  });

  test("an age that has passed is ago", () => {
    expect([agoWords(0), agoWords(8_000)]).toEqual(["now", "8 s ago"]);
  });

  test("numbers have groups, and very large ones their size", () => {
    expect([numberWords(1_234_567), numberWords("18446744073709551616"), sizeWords("65536")]).toEqual([
      "1,234,567",
      "18,446,744,073,709,551,616",
      "65,536",
    ]);
    expect(sizeWords("1208925819614629174706176")).toBe("1.2 × 10^24");
  });

  test("a small share is not nothing", () => {
    expect([0, 0.0001, 0.004, 0.05, 0.123, 1].map(shareWords)).toEqual([
      "0 %",
      "< 0.1 %",
      "0.4 %",
      "5 %",
      "12 %",
      "100 %",
    ]);
  });

  test("a time has its date unless it is of today", () => {
    const noon = new Date(2026, 0, 31, 12, 5, 6).getTime();

    expect(timeWords(noon, noon + 1)).toBe(clockWords(noon));
    expect(timeWords(noon, noon + 86_400_000)).toBe("2026-01-31 12:05");
    expect(clockWords(noon)).toBe("12:05:06");
    expect(dateWords(noon)).toBe("2026-01-31 12:05");
    expect(exactTime(0)).toBe("1970-01-01T00:00:00.000Z");
    expect(exactTime(Number.NaN)).toBe("NaN");
  });
});
