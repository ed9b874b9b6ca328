/**
 * Proof that the simulation can fail: each patch beside this file puts a bug into a copy of the product, and the
 * simulation of that copy must find it, while the product itself is clean on the same seed.
 */
import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { counted } from "../../src/counted.ts";
import { proofSize } from "../../test/support/proof-size.ts";
import { allInvariants } from "../judge/all.ts";
import { checkPatch, type FoundBug, findBug } from "./find-bug.ts";
import { PLANTED_BUGS, type PlantedBug } from "./planted-bugs.ts";
import { commandOf, playSeed } from "./play-seed.ts";

const PATCHES = PLANTED_BUGS.map(({ patch }) => patch);
const MINUTES = 10;

/** The others take longer. */
const PLAYED: readonly string[] = proofSize({ everyDay: PATCHES.slice(0, 1), soak: PATCHES });

describe("planted bugs", () => {
  test("there are ten of them, and all can be planted", async () => {
    const files = readdirSync(import.meta.dir).filter((name) => name.endsWith(".patch"));

    expect(files.toSorted()).toEqual(PATCHES.map((patch) => `${patch}.patch`).toSorted());
    expect(files.length).toBeGreaterThanOrEqual(10);
    for (const patch of PATCHES) await checkPatch(patch);
  });

  test("each violates an invariant that exists", () => {
    const names = [...allInvariants().map(({ name }) => name), "what is asked for is copied"];

    const inClusters = PLANTED_BUGS.filter((bug) => !("scenario" in bug));
    expect(inClusters.filter(({ violates }) => !names.includes(violates))).toEqual([]);
  });

  for (const bug of PLANTED_BUGS.filter(({ patch }) => PLAYED.includes(patch))) {
    test(
      `${bug.patch} is found`,
      async () => {
        const found = await findBug(bug.patch, { minutes: MINUTES });
        console.log(describeFound(bug, found));

        expect(found.seed).toBeNumber();
        expect(await playSeed(bug, found.seed ?? 0)).toEqual([]);
      },
      (MINUTES + 5) * 60_000,
    );
  }
});

function describeFound(bug: PlantedBug, { seed, what, played, seconds }: FoundBug): string {
  const effort = `after ${seconds.toFixed(1)} s and ${counted(played, "seed")}`;
  if (seed === undefined) return `${bug.patch}: NOT found ${effort}`;
  return `${bug.patch}: found ${effort}, by ${commandOf(bug, seed)}: ${bug.violates}: ${what}`;
}
