/**
 * Proof that the simulation can fail: each patch beside this file puts a bug into a copy of the product, and the
 * simulation of that copy must find it, while the product itself is clean on the same seed.
 */
import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { proofSize } from "../../test/support/proof-size.ts";
import { allInvariants } from "../judge/all.ts";
import { runScript } from "../run/run-script.ts";
import { generateScript } from "../script/generate.ts";
import { checkPatch, findBug } from "./find-bug.ts";
import { PLANTED_BUGS } from "./planted-bugs.ts";

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

    expect(PLANTED_BUGS.filter(({ violates }) => !names.includes(violates))).toEqual([]);
  });

  for (const { patch, violates } of PLANTED_BUGS.filter((bug) => PLAYED.includes(bug.patch))) {
    test(
      `${patch} is found`,
      async () => {
        const began = performance.now();
        const { seed, what } = await findBug(patch, { minutes: MINUTES });
        console.log(
          `${patch}: seed ${seed}, ${((performance.now() - began) / 1_000).toFixed(1)} s: ${violates}: ${what}`,
        );

        expect(seed).toBeNumber();
        expect((await runScript(generateScript(seed ?? 0))).violations).toEqual([]);
      },
      (MINUTES + 5) * 60_000,
    );
  }
});
