import { describe, expect, test } from "bun:test";
import { playScenario } from "./scenarios.ts";

describe("the operator in a simulation", () => {
  test("however it is disturbed, the cluster ends as without disturbances, and then nothing is written", async () => {
    const { violations } = await playScenario("operator", 1);

    expect(violations).toEqual([]);
  });
});
