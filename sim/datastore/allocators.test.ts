import { describe, expect, test } from "bun:test";
import { runAllocators } from "./allocators-scenario.ts";
import { DATASTORES } from "./servers.ts";

const SEEDS = Array.from({ length: 4 }, (_, index) => index + 1);

describe.each(DATASTORES)("allocators under all faults: %s", (kind) => {
  test("no address is held twice, and whoever was told one holds it", async () => {
    let [assigned, released] = [0, 0];
    for (const seed of SEEDS) {
      const outcome = await runAllocators(seed, kind);
      expect({ seed, violations: outcome.violations }).toEqual({ seed, violations: [] });
      assigned += outcome.assigned;
      released += outcome.released;
    }

    expect(assigned).toBeGreaterThan(20);
    expect(released).toBeGreaterThan(40);
  });

  test("the same seed gives the same events, another one others", async () => {
    const [first, again, other] = [
      await runAllocators(3, kind),
      await runAllocators(3, kind),
      await runAllocators(4, kind),
    ];

    expect(again).toEqual(first);
    expect(other.trace).not.toBe(first.trace);
  });
});
