import { describe, expect, test } from "bun:test";
import { runUpgradeScenario } from "./upgrade-scenario.ts";

describe("an upgrade in a simulation", () => {
  test("killed, frozen and continued anywhere, it ends as an undisturbed one; rolled back, as if there had been none", async () => {
    for (const seed of [1, 2, 5]) {
      const { violations } = await runUpgradeScenario(seed);
      expect({ seed, violations }).toEqual({ seed, violations: [] });
    }
  });
});
