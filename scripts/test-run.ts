/** The steps of `make test` and `make soak`: each runs in its own process and its outcome is printed, for tests with the runner's counts. */
import { chmodSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../test/support/temporary-directory.ts";
import { blocksOf } from "./test-output.ts";
import { CRASHED, countsOf, failureLines, namesOf, readReport, type TestCase, type TestReport } from "./test-report.ts";

const bun = process.execPath;
const EXIT_INTERRUPTED = 130;
/** A process that a step has left running may keep the step's output open. */
const OUTPUT_GRACE_MILLISECONDS = 2_000;

/**
 * The temporary directories of all steps, including those that fail: they are
 * removed when this process ends or is interrupted.
 */
const folder = temporaryDirectory("run");
chmodSync(folder.path, 0o1777);

/** The outcome of every step that runs now; several may run at the same time. */
const running = new Map<Bun.Subprocess, Promise<number>>();
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, async () => {
    for (const child of running.keys()) child.kill(signal);
    await Promise.all(running.values());
    process.exit(EXIT_INTERRUPTED);
  });
}

export interface StepOptions {
  readonly environment?: Readonly<Record<string, string>>;
  /** "blocks of a file": for steps that run at the same time; everything about a test file is printed when it has ended. */
  readonly output?: "at once" | "blocks of a file";
}

let steps = 0;

export async function step(name: string, command: readonly string[], options: StepOptions = {}): Promise<boolean> {
  const { ok, seconds } = await timedStep(command, options);
  console.log(`${name}: ${ok ? "ok" : "failed"} (${seconds} s)`);
  return ok;
}

async function timedStep(command: readonly string[], options: StepOptions): Promise<{ ok: boolean; seconds: string }> {
  const started = performance.now();
  const { environment, output = "at once" } = options;
  const env = { ...process.env, TMPDIR: makeTemporary(), ...environment };
  const code = await (output === "at once" ? runAtOnce(command, env) : runInBlocks(command, env));
  return { ok: code === 0, seconds: ((performance.now() - started) / 1000).toFixed(1) };
}

/** Short, because paths of sockets are limited; some tests run as another user. */
function makeTemporary(): string {
  steps += 1;
  const temporary = join(folder.path, String(steps));
  mkdirSync(temporary);
  chmodSync(temporary, 0o1777);
  return temporary;
}

type Environment = Readonly<Record<string, string | undefined>>;

function runAtOnce(command: readonly string[], env: Environment): Promise<number> {
  const child = Bun.spawn([...command], { env, stdout: "inherit", stderr: "inherit", stdin: "ignore" });
  return track(child, child.exited);
}

function runInBlocks(command: readonly string[], env: Environment): Promise<number> {
  const merged = ["sh", "-c", 'exec "$@" 2>&1', "sh", ...command];
  const child = Bun.spawn(merged, { env, stdout: "pipe", stderr: "inherit", stdin: "ignore" });
  const print = async () => {
    for await (const block of blocksOf(child.stdout)) process.stdout.write(block);
  };
  const overdue = child.exited.then(() => Bun.sleep(OUTPUT_GRACE_MILLISECONDS));
  return track(
    child,
    Promise.race([print(), overdue]).then(() => child.exited),
  );
}

function track(child: Bun.Subprocess, ended: Promise<number>): Promise<number> {
  running.set(child, ended);
  return ended.finally(() => running.delete(child));
}

export interface TestGroup extends StepOptions {
  readonly name: string;
  /** Directories or files. */
  readonly places: readonly string[];
  /** Only tests with this pattern in their title. */
  readonly title?: string | undefined;
  /** Options of the runner. */
  readonly runner?: readonly string[];
}

/** A line for each group of tests that has ended: what it took, and its counts. */
const endedGroups: string[] = [];
let groups = 0;

export async function testGroup({ name, places, title, runner = [], ...options }: TestGroup): Promise<TestReport> {
  groups += 1;
  const file = join(folder.path, `report-${groups}.xml`);
  const command = [bun, "test", "--timeout", "120000", ...runner, "--reporter=junit", `--reporter-outfile=${file}`];
  const titles = title === undefined ? [] : ["--test-name-pattern", title];
  const { ok, seconds } = await timedStep([...command, ...titles, ...places.map((place) => `./${place}`)], options);
  const found = reportOf(name, file, ok);
  // The runner reports those with other titles as skipped.
  const report = title === undefined ? found : { ...found, cases: found.cases.filter(isRun) };
  const line = `${name} tests: ${countsText(report)} (${seconds} s)`;
  endedGroups.push(line);
  console.log(line);
  return report;
}

function isRun({ outcome }: TestCase): boolean {
  return outcome !== "skipped";
}

function reportOf(name: string, file: string, ok: boolean): TestReport {
  if (!existsSync(file)) {
    console.error(`The ${name} tests ended without a report: the runner crashed`);
    return CRASHED;
  }
  const report = readReport(readFileSync(file, "utf8"));
  // A file that cannot be loaded fails the runner, but none of its tests.
  return ok || countsOf(report).failed > 0 ? report : { ...report, otherFailures: 1 };
}

const MOST_LINES_OF_A_REASON = 20;

/**
 * Prints every skipped test with its reason, every test that passed only alone and every failed test with what it says;
 * then time and counts of each group, and on the last line the counts of all.
 */
export function printCounts(total: TestReport, passedOnlyAlone: readonly string[] = []): void {
  for (const name of namesOf(total, "skipped")) console.log(`skipped: ${name}`);
  for (const name of passedOnlyAlone) console.log(`failed at first, passed alone: ${name}`);
  for (const line of failureLines(total, MOST_LINES_OF_A_REASON)) console.log(line);
  for (const line of endedGroups) console.log(line);
  console.log(countsText(total));
}

function countsText(report: TestReport): string {
  const { passed, failed, skipped } = countsOf(report);
  return `${passed} passed, ${failed} failed, ${skipped} skipped`;
}
