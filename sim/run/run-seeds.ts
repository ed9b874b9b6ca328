/** Plays one script after another, and says what came of it. */
import { describeScenarioFailure, playScenario, type ScenarioName, scenarioOf } from "../control/scenarios.ts";
import { generateScript } from "../script/generate.ts";
import type { Script } from "../script/operation.ts";
import { addCoverage, type CoverageCounts, coverageTable } from "./coverage.ts";
import { type RunOutcome, runScript } from "./run-script.ts";
import { shrinkScript } from "./shrink.ts";

export interface Failure {
  readonly seed: number;
  readonly outcome: RunOutcome;
  readonly shrunk: Script;
}

export interface SeedsPlan {
  /** Every one of them, until `isOver` says so. */
  readonly seeds: Iterable<number>;
  readonly isOver?: () => boolean;
  readonly print: (line: string) => void;
  /** How many scripts may be tried to make a failed one smaller. */
  readonly attemptsToShrink?: number;
  /** Some of the seeds are of the controllers, the operator or an upgrade. */
  readonly withScenarios?: boolean;
  /** Enough of them. */
  readonly mostFailures?: number;
}

/** Sums; plain data, so that processes can pass them on. */
export interface SeedsReport {
  readonly seeds: number;
  readonly failed: readonly number[];
  /** As "upgrade 6". */
  readonly failedScenarios: readonly string[];
  /** How many seeds were of which flavour or scenario. */
  readonly flavours: Readonly<Record<string, number>>;
  readonly steps: number;
  readonly virtualMilliseconds: number;
  readonly coverage: CoverageCounts;
  /** Of the scripts: in how many the work at rest was judged. */
  readonly restJudged: number;
}

export const EMPTY_SEEDS_REPORT: SeedsReport = {
  ...{ seeds: 0, failed: [], failedScenarios: [], flavours: {} },
  ...{ steps: 0, virtualMilliseconds: 0, coverage: {}, restJudged: 0 },
};

/** What fails that often need not be played on. */
const MOST_FAILURES = 20;

export async function runSeeds(plan: SeedsPlan): Promise<SeedsReport> {
  let report = EMPTY_SEEDS_REPORT;
  for (const seed of plan.seeds) {
    if (plan.isOver?.() === true || failuresOf(report).length >= (plan.mostFailures ?? MOST_FAILURES)) break;
    const scenario = plan.withScenarios === true ? scenarioOf(seed) : undefined;
    const played = scenario === undefined ? await runSeed(seed, plan) : await runScenario(scenario, seed, plan);
    report = addSeeds(report, { ...EMPTY_SEEDS_REPORT, seeds: 1, ...played });
  }
  return report;
}

async function runSeed(seed: number, plan: SeedsPlan): Promise<Partial<SeedsReport>> {
  const script = generateScript(seed);
  const outcome = await runScript(script);
  const isFailed = outcome.violations.length > 0;
  if (isFailed) plan.print(describeFailure(await shrinkFailure(script, outcome, plan.attemptsToShrink)));
  const { steps, virtualMilliseconds, coverage } = outcome;
  const restJudged = outcome.isWorkJudged ? 1 : 0;
  const flavours = { [script.flavour]: 1 };
  return { failed: isFailed ? [seed] : [], flavours, steps, virtualMilliseconds, coverage, restJudged };
}

async function runScenario(name: ScenarioName, seed: number, plan: SeedsPlan): Promise<Partial<SeedsReport>> {
  const { violations, steps } = await playScenario(name, seed);
  const isFailed = violations.length > 0;
  if (isFailed) plan.print(describeScenarioFailure(name, seed, violations));
  return { failedScenarios: isFailed ? [`${name} ${seed}`] : [], flavours: { [name]: 1 }, steps };
}

/** In words. */
export function failuresOf({ failed, failedScenarios }: SeedsReport): readonly string[] {
  return [...failed.map(String), ...failedScenarios];
}

export async function shrinkFailure(script: Script, outcome: RunOutcome, attempts = 150): Promise<Failure> {
  const invariant = outcome.violations[0]?.invariant;
  const fails = async (smaller: Script) =>
    (await runScript(smaller)).violations.some((violation) => violation.invariant === invariant);
  return { seed: script.seed, outcome, shrunk: await shrinkScript(script, fails, attempts) };
}

export function describeFailure({ seed, outcome, shrunk }: Failure): string {
  const [first] = outcome.violations;
  const more = outcome.violations.length > 1 ? ` (and ${outcome.violations.length - 1} more)` : "";
  const operations = shrunk.operations.map((operation) => `  ${JSON.stringify(operation)}`);
  return [
    `seed ${seed} failed after ${((outcome.violatedAt ?? 0) / 1_000).toFixed(1)} s: ${first?.invariant}: ${first?.what}${more}`,
    `play it again: make simulate SEED=${seed}   or   bun sim/main.ts --seed ${seed} --trace`,
    `shrunk to ${shrunk.operations.length} operations (datastore ${shrunk.datastore}, nodes ${shrunk.nodes.join(" ")}):`,
    ...operations,
  ].join("\n");
}

export function addSeeds(left: SeedsReport, right: SeedsReport): SeedsReport {
  return {
    seeds: left.seeds + right.seeds,
    failed: [...left.failed, ...right.failed],
    failedScenarios: [...left.failedScenarios, ...right.failedScenarios],
    flavours: addCounts(left.flavours, right.flavours),
    steps: left.steps + right.steps,
    virtualMilliseconds: left.virtualMilliseconds + right.virtualMilliseconds,
    coverage: addCoverage(left.coverage, right.coverage),
    restJudged: left.restJudged + right.restJudged,
  };
}

function addCounts(left: SeedsReport["flavours"], right: SeedsReport["flavours"]): SeedsReport["flavours"] {
  const names = [...new Set([...Object.keys(left), ...Object.keys(right)])];
  return Object.fromEntries(names.map((name) => [name, (left[name] ?? 0) + (right[name] ?? 0)]));
}

/** The coverage, and the counts on the last line. */
export function describeSeeds(report: SeedsReport, realMilliseconds: number): string {
  const { seeds, steps, virtualMilliseconds, coverage } = report;
  const flavours = Object.entries(report.flavours).map(([name, count]) => `${count} ${name}`);
  const time = `${(virtualMilliseconds / 3_600_000).toFixed(1)} h of virtual time in ${(realMilliseconds / 1_000).toFixed(0)} s`;
  const failures = failuresOf(report);
  const outcome =
    failures.length === 0 ? "0 failed" : `${failures.length} failed (seeds ${failures.slice(0, 20).join(", ")})`;
  const scripts = (report.flavours["realistic"] ?? 0) + (report.flavours["hostile"] ?? 0);
  const rest = `Work at rest was judged in ${report.restJudged} of ${scripts} clusters.`;
  return `${coverageTable(coverage)}\n${rest}\n${seeds} seeds (${flavours.join(", ")}), ${steps} steps, ${time}: ${outcome}`;
}
