import { describe, expect, test } from "bun:test";
import { playScenario } from "./scenarios.ts";

describe("the operator in a simulation", () => {
  test.each([
    [1, "the first"],
    [2077400695, "a user takes the operator's label from a Deployment just before the Installation is deleted"],
  ])(
    "however it is disturbed, the cluster ends as without disturbances, and then nothing is written: seed %d (%s)",
    async (seed) => {
      const { violations } = await playScenario("operator", seed);

      expect(violations).toEqual([]);
    },
  );
});
