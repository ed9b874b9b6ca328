/** What is played beside whole clusters: parts of one without nodes, each with the faults that it meets. */
import { runAllocators } from "../datastore/allocators-scenario.ts";
import { DATASTORES } from "../datastore/servers.ts";
import { loadModules } from "../schedule/load-modules.ts";
import { Random } from "../schedule/random.ts";
import { runControllersScenario, type ScenarioOutcome } from "./controllers-scenario.ts";
import { runKeptScenario } from "./kept/kept-scenario.ts";
import { runOperatorScenario } from "./operator-scenario.ts";
import { runStalledScenario } from "./upgrade/stalled-scenario.ts";
import { runUpgradeScenario } from "./upgrade/upgrade-scenario.ts";

const SCENARIOS = {
  allocators: runAllocatorsScenario,
  controllers: runControllersScenario,
  operator: runOperatorScenario,
  upgrade: runUpgradeScenario,
  "stalled-upgrade": runStalledScenario,
  "kept-addresses": runKeptScenario,
} as const;

export type ScenarioName = keyof typeof SCENARIOS;

const SHARE = 0.1;

export function isScenarioName(name: string): name is ScenarioName {
  return Object.hasOwn(SCENARIOS, name);
}

/** In a long run some seeds are of scenarios; by chance, so that each of several processes has its share of them. */
export function scenarioOf(seed: number): ScenarioName | undefined {
  const random = new Random(seed).fork("scenario");
  return random.chance(SHARE) ? random.pick(Object.keys(SCENARIOS) as ScenarioName[]) : undefined;
}

/** The datastores take turns. */
async function runAllocatorsScenario(seed: number): Promise<ScenarioOutcome> {
  const outcome = await runAllocators(seed, DATASTORES[seed % DATASTORES.length] ?? "etcd");
  return { ...outcome, trace: String(outcome.trace) };
}

export async function playScenario(name: ScenarioName, seed: number): Promise<ScenarioOutcome> {
  await loadModules();
  return SCENARIOS[name](seed);
}

export function describeScenarioFailure(name: ScenarioName, seed: number, violations: readonly string[]): string {
  return [
    `${name} seed ${seed} failed: ${violations.length} violated`,
    `play it again: make simulate SCENARIO=${name} SEED=${seed}   or   bun sim/main.ts --scenario ${name} --seed ${seed}`,
    ...violations.slice(0, 10).map((line) => `  ${line}`),
  ].join("\n");
}
