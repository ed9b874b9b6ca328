/**
 * Proof that the simulation can fail: each patch beside this file puts a bug into a copy of the product, and the
 * simulation of that copy must find it, while the product itself is clean on the same seeds.
 */
import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { proofSize } from "../../test/support/proof-size.ts";
import { findBug, playSeeds } from "./find-bug.ts";

const PATCHES = readdirSync(import.meta.dir).filter((name) => name.endsWith(".patch"));
const MINUTES = 10;

/** The others are only applied: a patch must be kept current. */
const EVERY_DAY: readonly string[] = proofSize<readonly string[]>({ everyDay: [], soak: PATCHES });

describe("planted bugs", () => {
  test("there are ten of them", () => {
    expect(PATCHES.length).toBeGreaterThanOrEqual(10);
  });

  for (const patch of PATCHES) {
    const isPlayed = EVERY_DAY.includes(patch);
    test(
      isPlayed ? `${patch} is found` : `${patch} can be applied`,
      async () => {
        const found = await findBug(join(import.meta.dir, patch), { minutes: isPlayed ? MINUTES : 0 });
        if (!isPlayed) return;
        console.log(`${patch}: ${found.description}`);

        expect(found.seed).toBeNumber();
        expect((await playSeeds(process.cwd(), { seeds: `${found.seed}-${found.seed}` })).failed).toEqual([]);
      },
      (2 * MINUTES + 1) * 60_000,
    );
  }
});
