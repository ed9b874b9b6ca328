import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { proofSize } from "../test/support/proof-size.ts";
import { runScript } from "./run/run-script.ts";
import { generateScript } from "./script/generate.ts";
import type { Script } from "./script/operation.ts";

const HUNDRED = "1-100";
const MINUTES = process.env["MINUTES"] ?? "60";
const REGRESSIONS = join(import.meta.dir, "regressions");

describe("a cluster in one process", () => {
  test(
    "nothing is violated",
    async () => {
      const isOk = await proofSize({ everyDay: playHundredSeeds, soak: playForAnHour })();

      expect(isOk).toBe(true);
    },
    (Number(MINUTES) + 30) * 60_000,
  );

  test("the same seed gives the same events, another seed others", async () => {
    const hashes: number[] = [];
    for (const seed of [3, 3, 4]) hashes.push((await runScript(generateScript(seed))).traceHash);

    expect(hashes[0]).toBe(hashes[1] as number);
    expect(hashes[0]).not.toBe(hashes[2] as number);
  });

  for (const file of readdirSync(REGRESSIONS).filter((name) => name.endsWith(".json"))) {
    test(`what once failed does not: ${file}`, async () => {
      const script = JSON.parse(readFileSync(join(REGRESSIONS, file), "utf8")) as Script;

      expect((await runScript(script)).violations).toEqual([]);
    });
  }
});

function playHundredSeeds(): Promise<boolean> {
  return play("--seeds", HUNDRED);
}

function playForAnHour(): Promise<boolean> {
  return play("--minutes", MINUTES);
}

/** In several processes. */
async function play(...limits: readonly string[]): Promise<boolean> {
  const command = [process.execPath, join(import.meta.dir, "main.ts"), ...limits];
  const child = Bun.spawn(command, { stdout: "inherit", stderr: "inherit", stdin: "ignore" });
  return (await child.exited) === 0;
}
