import { describe, expect, test } from "bun:test";
import { proofSize } from "../../../test/support/proof-size.ts";
import { playScenario } from "../scenarios.ts";

describe("an upgrade in a simulation, with a node that stalls", () => {
  test("unlocks the datastore, keeps the former storage locked and what was assigned, and ends when the node is back", async () => {
    // Each is one that finds a planted bug; 24: an ADD writes between the copy and its comparison; 95040: no run is there when
    // the storage is unlocked by hand; 210097: it was unlocked by hand, and a rollback that is refused gives way to the upgrade.
    for (const seed of proofSize({ everyDay: [1, 24, 210_097], soak: [1, 2, 6, 9, 16, 24, 95_040, 210_097] })) {
      const { violations } = await playScenario("stalled-upgrade", seed);
      expect({ seed, violations }).toEqual({ seed, violations: [] });
    }
  });
});
