/**
 * `make test`: the gate, then every test in groups of their own process, then
 * every skipped test with its reason, then one closing line with the counts
 * that the runner itself recorded.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installPackages } from "./packages.ts";
import { addReports, EMPTY_REPORT, readReport, type TestReport } from "./test-report.ts";

const bun = process.execPath;
const reports = mkdtempSync(join(tmpdir(), "test-report-"));

await installPackages();
const gate = await step("lint", [bun, "scripts/lint.ts"]);
const built = await step("build", [bun, "scripts/build.ts"]);

const groups = [await testGroup("unit", "./src"), await testGroup("system", "./test")];
rmSync(reports, { recursive: true });

const total = groups.reduce(addReports, EMPTY_REPORT);
for (const name of total.skippedTests) console.log(`skipped: ${name}`);
if (!gate) console.log("not passed: the gate (lint) failed");
if (!built) console.log("not passed: the build failed");
console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
process.exit(gate && built && total.failed === 0 ? 0 : 1);

async function step(name: string, command: readonly string[]): Promise<boolean> {
  const started = performance.now();
  const code = await Bun.spawn([...command], { stdout: "inherit", stderr: "inherit", stdin: "ignore" }).exited;
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`${name}: ${code === 0 ? "ok" : `failed with exit code ${code}`} (${seconds} s)`);
  return code === 0;
}

async function testGroup(name: string, folder: string): Promise<TestReport> {
  const file = join(reports, `${name}.xml`);
  const command = [bun, "test", "--timeout", "120000", "--reporter=junit", `--reporter-outfile=${file}`, folder];
  const ok = await step(`${name} tests`, command);
  if (!existsSync(file)) {
    console.error(`The ${name} tests ended without a report: the runner crashed`);
    return { ...EMPTY_REPORT, failed: 1 };
  }
  const report = readReport(readFileSync(file, "utf8"));
  // A file that cannot even be loaded fails the runner, yet none of its tests.
  return ok || report.failed > 0 ? report : { ...report, failed: 1 };
}
