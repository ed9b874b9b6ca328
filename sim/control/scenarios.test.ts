import { describe, expect, test } from "bun:test";
import { addSeeds, describeSeeds, EMPTY_SEEDS_REPORT } from "../run/run-seeds.ts";
import { describeScenarioFailure, scenarioOf } from "./scenarios.ts";

describe("scenarios in a long run", () => {
  test("are about a tenth of the seeds, of each kind, also for a process that plays every second one", () => {
    const seeds = Array.from({ length: 4_000 }, (_, index) => 2 * index);
    const counts = Object.groupBy(seeds, (seed) => scenarioOf(seed) ?? "none");

    for (const name of [
      "allocators",
      "controllers",
      "operator",
      "upgrade",
      "stalled-upgrade",
      "kept-addresses",
    ] as const) {
      expect(counts[name]?.length).toBeGreaterThan(40);
      expect(counts[name]?.length).toBeLessThan(150);
    }
  });

  test("are counted by name, and a failed one says how to play it again", () => {
    const upgrade = { ...EMPTY_SEEDS_REPORT, seeds: 1, flavours: { upgrade: 1 }, failedScenarios: ["upgrade 6"] };
    const hostile = { ...EMPTY_SEEDS_REPORT, seeds: 2, flavours: { hostile: 2 }, failed: [4] };
    const summary = describeSeeds(addSeeds(addSeeds(upgrade, hostile), upgrade), 0);

    expect(summary).toContain("4 seeds (2 upgrade, 2 hostile)");
    expect(summary).toContain("3 failed (seeds 4, upgrade 6, upgrade 6)");
    expect(describeScenarioFailure("upgrade", 6, ["locked"])).toContain("make simulate SCENARIO=upgrade SEED=6 ");
  });
});
