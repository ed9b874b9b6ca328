import { describe, expect, test } from "bun:test";
import { runOperatorScenario } from "./operator-scenario.ts";

describe("the operator in a simulation", () => {
  test("however it is disturbed, the cluster ends as without disturbances, and then nothing is written", async () => {
    for (let seed = 1; seed <= 3; seed++) {
      const { violations } = await runOperatorScenario(seed);
      expect({ seed, violations }).toEqual({ seed, violations: [] });
    }
  });
});
