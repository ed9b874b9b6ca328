import { expect, test } from "bun:test";
import { DATASTORES } from "../../datastore/servers.ts";
import { loadModules } from "../../schedule/load-modules.ts";
import { runKeptScenario } from "./kept-scenario.ts";

const SEEDS = Array.from({ length: DATASTORES.length }, (_, index) => index + 1);

test("a kept address is never another pod's, nor lost while its owner exists, and rests", async () => {
  await loadModules();
  const counts = { assigned: 0, again: 0, freed: 0 };
  for (const seed of SEEDS) {
    const { violations, assigned, again, freed } = await runKeptScenario(seed);
    expect({ seed, violations }).toEqual({ seed, violations: [] });
    counts.assigned += assigned;
    counts.again += again;
    counts.freed += freed;
  }
  expect(counts.assigned).toBeGreaterThan(30);
  expect(counts.again).toBeGreaterThan(10);
  expect(counts.freed).toBeGreaterThan(10);
});

test("the same seed gives the same events, another one others", async () => {
  const traces: string[] = [];
  for (const seed of [3, 3, 4]) traces.push((await runKeptScenario(seed)).trace);

  expect(traces[1]).toBe(traces[0] as string);
  expect(traces[2]).not.toBe(traces[0]);
});
