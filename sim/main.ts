/**
 * Plays the simulation of a cluster.
 *
 *   bun sim/main.ts --seed 7 [--trace] [--save FILE]     one seed; a failure is made smaller, and stored if wanted
 *   bun sim/main.ts --script FILE [--trace]              a stored script
 *   bun sim/main.ts --scenario upgrade --seed 6          allocators, controllers, the operator or an upgrade
 *   bun sim/main.ts [--seeds 1-100]                      these, on as many processes as there are cores
 *   bun sim/main.ts --minutes 60 [--first 1]             as many as there is time for, others each time, scenarios too
 *
 * Exits with 1 if something was violated.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { describeScenarioFailure, isScenarioName, playScenario } from "./control/scenarios.ts";
import { runScript } from "./run/run-script.ts";
import type { SeedsReport } from "./run/run-seeds.ts";
import {
  addSeeds,
  describeFailure,
  describeSeeds,
  EMPTY_SEEDS_REPORT,
  failuresOf,
  runSeeds,
  shrinkFailure,
} from "./run/run-seeds.ts";
import { generateScript } from "./script/generate.ts";
import type { Script } from "./script/operation.ts";

const { values: given } = parseArgs({
  options: {
    seed: { type: "string" },
    script: { type: "string" },
    scenario: { type: "string" },
    seeds: { type: "string" },
    minutes: { type: "string" },
    first: { type: "string" },
    every: { type: "string", default: "1" },
    processes: { type: "string", default: String(availableParallelism()) },
    trace: { type: "boolean", default: false },
    save: { type: "string" },
    /** One of several processes: the report goes to stdout as JSON, everything else to stderr. */
    part: { type: "boolean", default: false },
    "with-scenarios": { type: "boolean", default: false },
    /** The first failure is enough, and is not made smaller. */
    "until-failure": { type: "boolean", default: false },
  },
});

/** A process keeps some memory of each seed that it has played, so it plays no more than this many. */
const SEEDS_PER_PROCESS = 25;
/** Of each share: what fails that often need not be played on. */
const MOST_FAILING_PROCESSES = 10;

const began = performance.now();
const isOk = await run();
process.exit(isOk ? 0 : 1);

async function run(): Promise<boolean> {
  if (given.script !== undefined) return playOne(JSON.parse(readFileSync(given.script, "utf8")) as Script);
  if (given.scenario !== undefined) return playOneScenario(given.scenario, Number(given.seed ?? 1));
  if (given.seed !== undefined) return playOne(generateScript(Number(given.seed)));
  if (given.part) return playPart();
  return playInProcesses();
}

async function playOne(script: Script): Promise<boolean> {
  const outcome = await runScript(script, given.trace ? { trace: (line) => console.log(line) } : {});
  if (outcome.violations.length === 0) {
    const { steps, virtualMilliseconds, traceHash } = outcome;
    console.log(
      `seed ${script.seed}: nothing violated in ${steps} steps, ${virtualMilliseconds / 1_000} s (trace ${traceHash})`,
    );
    return true;
  }
  const failure = await shrinkFailure(script, outcome);
  console.log(describeFailure(failure));
  if (given.save !== undefined) writeFileSync(given.save, `${JSON.stringify(failure.shrunk, undefined, 2)}\n`);
  return false;
}

async function playOneScenario(name: string, seed: number): Promise<boolean> {
  if (!isScenarioName(name)) throw new Error(`There is no scenario "${name}".`);
  const { violations, steps } = await playScenario(name, seed);
  const isOk = violations.length === 0;
  if (isOk) console.log(`${name} seed ${seed}: nothing violated in ${steps} steps`);
  else console.log(describeScenarioFailure(name, seed, violations));
  return isOk;
}

/** Its share of the seeds: every n-th of them. */
async function playPart(): Promise<boolean> {
  const [first, last] = range();
  const limit = given.minutes === undefined ? Number.POSITIVE_INFINITY : Number(given.minutes) * 60_000;
  const seeds = function* () {
    for (let seed = first; seed <= last; seed += Number(given.every)) yield seed;
  };
  const report = await runSeeds({
    seeds: seeds(),
    isOver: () => performance.now() - began > limit,
    withScenarios: given["with-scenarios"],
    ...(given["until-failure"] ? { mostFailures: 1, attemptsToShrink: 0 } : {}),
    print: (line) => console.error(line),
  });
  console.log(JSON.stringify(report));
  return failuresOf(report).length === 0;
}

function range(): readonly [first: number, last: number] {
  if (given.minutes !== undefined && given.seeds === undefined) {
    // Other ones each day, and the same on a day.
    return [Number(given.first ?? Math.floor(Date.now() / 86_400_000) * 100_000), Number.POSITIVE_INFINITY];
  }
  const [first = 1, last = first] = (given.seeds ?? "1-100").split("-").map(Number);
  return [first, last];
}

async function playInProcesses(): Promise<boolean> {
  const processes = Math.max(1, Number(given.processes));
  const parts = (
    await Promise.all(Array.from({ length: processes }, (_, index) => playShare(index, processes)))
  ).flat();
  let report: SeedsReport = EMPTY_SEEDS_REPORT;
  let crashed = 0;
  for (const { text, code } of parts) {
    if (text.trim() === "") {
      crashed += 1;
      console.error(`a process ended with exit code ${code}, without a report`);
    } else report = addSeeds(report, JSON.parse(text) as SeedsReport);
  }
  console.log(describeSeeds(report, performance.now() - began));
  return crashed === 0 && failuresOf(report).length === 0;
}

/** One process after another, until all seeds of the share are played, the time is over, or one has seen enough failures. */
async function playShare(index: number, processes: number): Promise<readonly { text: string; code: number }[]> {
  const [first, last] = range();
  const outcomes: { text: string; code: number }[] = [];
  const count = SEEDS_PER_PROCESS * processes;
  for (let from = first + index; from <= last; from += count) {
    const left = given.minutes === undefined ? undefined : Number(given.minutes) - (performance.now() - began) / 60_000;
    if (left !== undefined && left <= 0) break;
    const seeds = `${from}-${Math.min(last, from + count - 1)}`;
    const limits = left === undefined ? [] : ["--minutes", String(left), "--with-scenarios"];
    const command = [process.execPath, import.meta.path, "--part", "--seeds", seeds, "--every", String(processes)];
    const child = Bun.spawn([...command, ...limits], { stdout: "pipe", stderr: "inherit", stdin: "ignore" });
    outcomes.push({ text: await new Response(child.stdout).text(), code: await child.exited });
    if (outcomes.filter(({ code }) => code !== 0).length >= MOST_FAILING_PROCESSES) break;
  }
  return outcomes;
}
