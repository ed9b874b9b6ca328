import { describe, expect, test } from "bun:test";
import { creationOf, forecastOf } from "./forecast.ts";

const NOW = Date.parse("2026-06-01T00:00:00Z");
const DAY = 86_400_000;

/** So many blocks each day, from so many days ago until now, of which so many begin at once. */
function daily(days: number, each: number, first = 1): readonly number[] {
  const later = Array.from({ length: (days - 2) * each }, (_, index) => NOW - (days - 2) * DAY + (index / each) * DAY);
  return [...new Array<number>(first).fill(NOW - days * DAY), ...later];
}

describe("forecastOf()", () => {
  test("says when a pool that grows evenly is full", () => {
    // 10 blocks a day of 32 addresses each.
    const blocksCreated = daily(100, 10);
    const forecast = forecastOf({ blocksCreated, used: BigInt(blocksCreated.length * 32), free: 3_200n, now: NOW });

    expect(forecast?.fromDays).toBe(30);
    expect(forecast?.perDay).toBeCloseTo(320, -1);
    expect(((forecast?.exhausted ?? 0) - NOW) / DAY).toBeCloseTo(10, 0);
  });

  test("does not count the blocks with which the cluster begins", () => {
    expect(forecastOf({ blocksCreated: daily(10, 0, 500), used: 5_000n, free: 100n, now: NOW })).toBeUndefined();
    const few = forecastOf({ blocksCreated: daily(10, 1, 500), used: 5_000n, free: 1_000n, now: NOW });
    expect(few?.perDay).toBeLessThan(15);
  });

  test.each([
    ["nothing is known", []],
    ["it is a day old", [NOW - DAY, NOW - DAY / 2, NOW - 1_000, NOW]],
    ["two blocks were added", [NOW - 20 * DAY, NOW - 3 * DAY, NOW - 2 * DAY]],
    ["most blocks do not say when they were created", [...daily(20, 1), ...new Array<undefined>(100)]],
  ])("says nothing if %s", (_, blocksCreated) => {
    expect(forecastOf({ blocksCreated, used: 100n, free: 100n, now: NOW })).toBeUndefined();
  });

  test("says nothing of a pool that lasts for decades, that is full, or whose blocks are empty", () => {
    const blocksCreated = daily(30, 1);

    expect(forecastOf({ blocksCreated, used: 100n, free: 2n ** 64n, now: NOW })).toBeUndefined();
    expect(forecastOf({ blocksCreated, used: 100n, free: 0n, now: NOW })).toBeUndefined();
    expect(forecastOf({ blocksCreated, used: 0n, free: 100n, now: NOW })).toBeUndefined();
  });
});

describe("creationOf()", () => {
  test("is where the sequence number began", () => {
    expect(creationOf({ sequenceNumber: BigInt(NOW) * 1_000_000n + 12_345n })).toBe(NOW);
    expect(creationOf({ sequenceNumber: 42n })).toBeUndefined();
  });
});
