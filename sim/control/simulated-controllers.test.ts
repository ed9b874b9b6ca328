import { describe, expect, test } from "bun:test";
import { playScenario } from "./scenarios.ts";

describe("the controllers in a simulation", () => {
  test("one of three writes at a time, and every copy is right at rest", async () => {
    for (const seed of [1, 2]) {
      const { violations } = await playScenario("controllers", seed);
      expect({ seed, violations }).toEqual({ seed, violations: [] });
    }
  });

  test("the same seed gives the same events", async () => {
    const [first, again] = [await playScenario("controllers", 3), await playScenario("controllers", 3)];

    expect(first.violations).toEqual([]);
    expect(first.trace).toEqual(again.trace);
    expect(first.steps).toBeGreaterThan(1_000);
  });
});
