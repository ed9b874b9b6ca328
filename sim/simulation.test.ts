import { describe, expect, test } from "bun:test";
import { runScript } from "./run/run-script.ts";
import { describeSeeds, runSeeds } from "./run/run-seeds.ts";
import { generateScript } from "./script/generate.ts";

const SEEDS = Array.from({ length: 100 }, (_, index) => index + 1);

describe("a cluster in one process", () => {
  test("a hundred seeds violate nothing", async () => {
    const print = (line: string) => console.log(line);
    const report = await runSeeds({ seeds: SEEDS, print });
    console.log(describeSeeds(report, 0));

    expect(report.failed).toEqual([]);
    expect(report.seeds).toBe(SEEDS.length);
  }, 300_000);

  test("the same seed gives the same events, another seed others", async () => {
    const hashes: number[] = [];
    for (const seed of [3, 3, 4]) hashes.push((await runScript(generateScript(seed))).traceHash);

    expect(hashes[0]).toBe(hashes[1] as number);
    expect(hashes[0]).not.toBe(hashes[2] as number);
  });
});
