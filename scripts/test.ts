/**
 * `make test`: the gate, then every test in groups of their own process, then
 * one closing line with the counts that the runner itself recorded.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installPackages } from "./packages.ts";

interface Counts {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

const bun = process.execPath;
const reports = mkdtempSync(join(tmpdir(), "test-report-"));

await installPackages();
const gate = await step("lint", [bun, "scripts/lint.ts"]);
const built = await step("build", [bun, "scripts/build.ts"]);

const results = [await testGroup("unit", "./src"), await testGroup("system", "./test")];
rmSync(reports, { recursive: true });

const counts = results.map((result) => result.counts).reduce(add, { passed: 0, failed: 0, skipped: 0 });
const well = gate && built && counts.failed === 0 && results.every((result) => result.code === 0);
console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
process.exit(well ? 0 : 1);

async function step(name: string, command: readonly string[]): Promise<boolean> {
  const started = performance.now();
  const code = await Bun.spawn([...command], { stdout: "inherit", stderr: "inherit", stdin: "ignore" }).exited;
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`${name}: ${code === 0 ? "ok" : `failed with exit code ${code}`} (${seconds} s)`);
  return code === 0;
}

async function testGroup(name: string, folder: string): Promise<{ code: number; counts: Counts }> {
  const report = join(reports, `${name}.xml`);
  const command = [bun, "test", "--timeout", "120000", "--reporter=junit", `--reporter-outfile=${report}`, folder];
  const ok = await step(`${name} tests`, command);
  if (existsSync(report)) return { code: ok ? 0 : 1, counts: countsOf(readFileSync(report, "utf8")) };

  console.error(`The ${name} tests ended without a report: the runner crashed`);
  return { code: 1, counts: { passed: 0, failed: 1, skipped: 0 } };
}

/** The totals on the report's root element. */
function countsOf(report: string): Counts {
  const root = /<testsuites [^>]*>/.exec(report)?.[0] ?? "";
  const number = (name: string) => Number(new RegExp(` ${name}="(\\d+)"`).exec(root)?.[1] ?? "0");
  const failed = number("failures");
  const skipped = number("skipped");
  return { passed: number("tests") - failed - skipped, failed, skipped };
}

function add(left: Counts, right: Counts): Counts {
  return {
    passed: left.passed + right.passed,
    failed: left.failed + right.failed,
    skipped: left.skipped + right.skipped,
  };
}
