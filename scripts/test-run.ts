/** Steps of `make test` and `make soak`: each a process of its own whose outcome is told, tests with the counts their runner recorded. */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EMPTY_REPORT, readReport, type TestReport } from "./test-report.ts";

const bun = process.execPath;

export async function step(
  name: string,
  command: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<boolean> {
  const started = performance.now();
  const env = { ...process.env, ...environment };
  const code = await Bun.spawn([...command], { env, stdout: "inherit", stderr: "inherit", stdin: "ignore" }).exited;
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`${name}: ${code === 0 ? "ok" : `failed with exit code ${code}`} (${seconds} s)`);
  return code === 0;
}

export interface TestGroup {
  readonly name: string;
  /** A folder or a file. */
  readonly place: string;
  readonly environment?: Readonly<Record<string, string>>;
}

export async function testGroup({ name, place, environment }: TestGroup): Promise<TestReport> {
  const folder = mkdtempSync(join(tmpdir(), "test-report-"));
  const file = join(folder, "report.xml");
  try {
    const command = [bun, "test", "--timeout", "120000", "--reporter=junit", `--reporter-outfile=${file}`, place];
    const ok = await step(`${name} tests`, command, environment);
    if (!existsSync(file)) {
      console.error(`The ${name} tests ended without a report: the runner crashed`);
      return { ...EMPTY_REPORT, failed: 1 };
    }
    const report = readReport(readFileSync(file, "utf8"));
    // A file that cannot even be loaded fails the runner, yet none of its tests.
    return ok || report.failed > 0 ? report : { ...report, failed: 1 };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Tells every skipped test with its reason, then the counts in one closing line. */
export function sayCounts(total: TestReport): void {
  for (const name of total.skippedTests) console.log(`skipped: ${name}`);
  console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
}
