/** Plays one script after another, and says what came of it. */
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
  /** Enough of them. */
  readonly mostFailures?: number;
}

/** Sums; plain data, so that processes can pass them on. */
export interface SeedsReport {
  readonly seeds: number;
  readonly failed: readonly number[];
  readonly steps: number;
  readonly virtualMilliseconds: number;
  readonly coverage: CoverageCounts;
}

export const EMPTY_SEEDS_REPORT: SeedsReport = { seeds: 0, failed: [], steps: 0, virtualMilliseconds: 0, coverage: {} };

/** What fails that often need not be played on. */
const MOST_FAILURES = 20;

export async function runSeeds(plan: SeedsPlan): Promise<SeedsReport> {
  let report = EMPTY_SEEDS_REPORT;
  for (const seed of plan.seeds) {
    if (plan.isOver?.() === true || report.failed.length >= (plan.mostFailures ?? MOST_FAILURES)) break;
    const script = generateScript(seed);
    const outcome = await runScript(script);
    const isFailed = outcome.violations.length > 0;
    report = addSeeds(report, {
      ...{ seeds: 1, failed: isFailed ? [seed] : [], steps: outcome.steps },
      ...{ virtualMilliseconds: outcome.virtualMilliseconds, coverage: outcome.coverage },
    });
    if (isFailed) plan.print(describeFailure(await shrinkFailure(script, outcome, plan.attemptsToShrink)));
  }
  return report;
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
    steps: left.steps + right.steps,
    virtualMilliseconds: left.virtualMilliseconds + right.virtualMilliseconds,
    coverage: addCoverage(left.coverage, right.coverage),
  };
}

/** The coverage, and the counts on the last line. */
export function describeSeeds(report: SeedsReport, realMilliseconds: number): string {
  const { seeds, failed, steps, virtualMilliseconds, coverage } = report;
  const time = `${(virtualMilliseconds / 3_600_000).toFixed(1)} h of virtual time in ${(realMilliseconds / 1_000).toFixed(0)} s`;
  const outcome =
    failed.length === 0 ? "0 failed" : `${failed.length} failed (seeds ${failed.slice(0, 20).join(", ")})`;
  return `${coverageTable(coverage)}\n${seeds} seeds, ${steps} steps, ${time}: ${outcome}`;
}
