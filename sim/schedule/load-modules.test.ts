import { expect, test } from "bun:test";
import { loadOnce } from "../../src/load-once.ts";
import { loadModules } from "./load-modules.ts";

/** More than any of them takes. */
const MOST_STEPS = 1_000;

/** How many steps of other code run until the promise continues. */
async function stepsUntil(promise: Promise<unknown>): Promise<number> {
  let isThere = false;
  void promise.then(() => {
    isThere = true;
  });
  let steps = 0;
  for (; !isThere && steps < MOST_STEPS; steps++) await Promise.resolve();
  return steps;
}

test("the first use of a part continues as soon as the next ones: the first seed is played as the others", async () => {
  const part = loadOnce(async () => {
    await Promise.resolve();
    return import("./random.ts");
  });
  await loadModules();

  const first = await stepsUntil(part());
  await part();

  expect(first).toBe(await stepsUntil(part()));
});
