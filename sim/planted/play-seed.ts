/** Plays a seed for a planted bug: a whole cluster, or the scenario in which the bug shows. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { playScenario } from "../control/scenarios.ts";
import type { Violation } from "../judge/invariant.ts";
import { runScript } from "../run/run-script.ts";
import { generateScript } from "../script/generate.ts";
import type { Script } from "../script/operation.ts";
import type { PlantedBug } from "./planted-bugs.ts";

/** Instead of a seed: the script of the bug, if it has one. */
export const OWN_SCRIPT = 0;

/** What the seed violates; `undefined` if it does not concern the bug, and was not played. */
export async function playSeed(bug: PlantedBug, seed: number): Promise<readonly Violation[] | undefined> {
  if (seed === OWN_SCRIPT) return playOwnScript(bug);
  if ("scenario" in bug) {
    const { violations } = await playScenario(bug.scenario, seed);
    // A scenario says in words what is violated.
    return violations.map((what) => ({ invariant: what.includes(bug.violates) ? bug.violates : "another", what }));
  }
  const script = generateScript(seed);
  return bug.concerns(script) ? (await runScript(script)).violations : undefined;
}

async function playOwnScript(bug: PlantedBug): Promise<readonly Violation[] | undefined> {
  const file = ownScript(bug);
  if (file === undefined) return undefined;
  const script = JSON.parse(readFileSync(join(import.meta.dir, "../..", file), "utf8")) as Script;
  return (await runScript(script)).violations;
}

function ownScript(bug: PlantedBug): string | undefined {
  return "scenario" in bug || bug.script === undefined ? undefined : `sim/regressions/${bug.script}.json`;
}

/** How a person plays it. */
export function commandOf(bug: PlantedBug, seed: number): string {
  if (seed === OWN_SCRIPT) return `make simulate SCRIPT=${ownScript(bug)}`;
  return `make simulate ${"scenario" in bug ? `SCENARIO=${bug.scenario} ` : ""}SEED=${seed}`;
}
