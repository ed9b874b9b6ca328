/** Plays a seed for a planted bug: a whole cluster, or the scenario in which the bug shows. */
import { playScenario } from "../control/scenarios.ts";
import type { Violation } from "../judge/invariant.ts";
import { runScript } from "../run/run-script.ts";
import { generateScript } from "../script/generate.ts";
import type { PlantedBug } from "./planted-bugs.ts";

/** What the seed violates; `undefined` if it does not concern the bug, and was not played. */
export async function playSeed(bug: PlantedBug, seed: number): Promise<readonly Violation[] | undefined> {
  if ("scenario" in bug) {
    const { violations } = await playScenario(bug.scenario, seed);
    // A scenario says in words what is violated.
    return violations.map((what) => ({ invariant: what.includes(bug.violates) ? bug.violates : "another", what }));
  }
  const script = generateScript(seed);
  return bug.concerns(script) ? (await runScript(script)).violations : undefined;
}

/** How a person plays it. */
export function commandOf(bug: PlantedBug, seed: number): string {
  return `make simulate ${"scenario" in bug ? `SCENARIO=${bug.scenario} ` : ""}SEED=${seed}`;
}
