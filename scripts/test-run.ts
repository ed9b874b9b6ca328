/** The steps of `make test` and `make soak`: each runs in its own process and its outcome is printed, for tests with the runner's counts. */
import { chmodSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../test/support/temporary-directory.ts";
import { EMPTY_REPORT, readReport, type TestReport } from "./test-report.ts";

const bun = process.execPath;
const EXIT_INTERRUPTED = 130;

/**
 * The temporary directory of all steps, including those that fail: it is removed
 * when this process ends or is interrupted.
 */
const folder = temporaryDirectory("run");
const temporary = join(folder.path, "t");
mkdirSync(temporary);
// Some tests run as another user.
for (const each of [folder.path, temporary]) chmodSync(each, 0o1777);

let running: Bun.Subprocess | undefined;
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, async () => {
    running?.kill(signal);
    await running?.exited;
    process.exit(EXIT_INTERRUPTED);
  });
}

export async function step(
  name: string,
  command: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<boolean> {
  const started = performance.now();
  const env = { ...process.env, TMPDIR: temporary, ...environment };
  running = Bun.spawn([...command], { env, stdout: "inherit", stderr: "inherit", stdin: "ignore" });
  const code = await running.exited;
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`${name}: ${code === 0 ? "ok" : `failed with exit code ${code}`} (${seconds} s)`);
  return code === 0;
}

export interface TestGroup {
  readonly name: string;
  /** A directory or a file. */
  readonly place: string;
  readonly environment?: Readonly<Record<string, string>>;
}

let groups = 0;

export async function testGroup({ name, place, environment }: TestGroup): Promise<TestReport> {
  groups += 1;
  const file = join(folder.path, `report-${groups}.xml`);
  const command = [bun, "test", "--timeout", "120000", "--reporter=junit", `--reporter-outfile=${file}`, place];
  const ok = await step(`${name} tests`, command, environment);
  if (!existsSync(file)) {
    console.error(`The ${name} tests ended without a report: the runner crashed`);
    return { ...EMPTY_REPORT, failed: 1 };
  }
  const report = readReport(readFileSync(file, "utf8"));
  // A file that cannot be loaded fails the runner, but none of its tests.
  return ok || report.failed > 0 ? report : { ...report, failed: 1 };
}

/** Prints every skipped test with its reason, then the counts on the last line. */
export function printCounts(total: TestReport): void {
  for (const name of total.skippedTests) console.log(`skipped: ${name}`);
  console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
}
