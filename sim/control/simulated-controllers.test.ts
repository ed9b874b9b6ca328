import { describe, expect, test } from "bun:test";
import { runControllersScenario } from "./controllers-scenario.ts";

describe("the controllers in a simulation", () => {
  test("one of three writes at a time, and every copy is right at rest", async () => {
    for (let seed = 1; seed <= 6; seed++) {
      const { violations } = await runControllersScenario(seed);
      expect({ seed, violations }).toEqual({ seed, violations: [] });
    }
  });

  test("the same seed gives the same events", async () => {
    const [first, again] = [await runControllersScenario(3), await runControllersScenario(3)];

    expect(first.trace).toEqual(again.trace);
    expect(first.steps).toBeGreaterThan(1_000);
  });
});
