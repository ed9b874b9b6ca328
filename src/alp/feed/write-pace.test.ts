import { describe, expect, test } from "bun:test";
import { WritePace } from "./write-pace.ts";

describe("WritePace", () => {
  test("a pod may be written three times at once and then once a minute, whatever others do", () => {
    let now = 0;
    const pace = new WritePace(() => now);
    const takes = (key: string, count: number) => Array.from({ length: count }, () => pace.take(key));
    expect(takes("a", 5)).toEqual([true, true, true, false, false]);
    now += 59_000;
    expect([...takes("a", 1), ...takes("b", 1)]).toEqual([false, true]);
    now += 1_001;
    expect(takes("a", 2)).toEqual([true, false]);
  });

  test("a pod that could not be written waits, longer each time, until it succeeds", () => {
    let now = 0;
    const pace = new WritePace(() => now);
    pace.failed("a");
    now += 1_999;
    expect(pace.take("a")).toBe(false);
    now += 1;
    expect(pace.take("a")).toBe(true);
    pace.failed("a");
    now += 3_999;
    expect(pace.take("a")).toBe(false);
    now += 1;
    expect(pace.take("a")).toBe(true);
    pace.succeeded("a");
    pace.failed("a");
    now += 2_000;
    expect(pace.take("a")).toBe(true);
  });

  test("forgets pods that are gone", () => {
    const pace = new WritePace(() => 0);
    for (const key of ["a", "b"]) for (let count = 0; count < 3; count += 1) pace.take(key);
    pace.keepOnly(new Set(["b"]));
    expect([pace.take("a"), pace.take("b")]).toEqual([true, false]);
  });
});
