import { describe, expect, test } from "bun:test";
import { playScenario } from "../scenarios.ts";

describe("an upgrade in a simulation", () => {
  test("killed, frozen and continued anywhere, it ends as an undisturbed one; rolled back, as if there had been none", async () => {
    // The last one goes back to a template that the agents have had before.
    for (const seed of [2, 3, 2077402057]) {
      const { violations } = await playScenario("upgrade", seed);
      expect({ seed, violations }).toEqual({ seed, violations: [] });
    }
  });
});
