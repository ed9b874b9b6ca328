/**
 * `make test`: runs the gate, then all tests in lanes, each in its own process;
 * prints every skipped test with its reason, and on the last line the counts that
 * the runner recorded. With a word: only the tests with it in their path or title, and what these need.
 */

import { chooseTests } from "./choose-tests.ts";
import { installPrograms } from "./programs/install.ts";
import { assignFiles } from "./test-lanes.ts";
import {
  addReports,
  countsOf,
  EMPTY_REPORT,
  failedFiles,
  passedAlone,
  replaceFailedFiles,
  type TestReport,
} from "./test-report.ts";
import { printCounts, step, testGroup } from "./test-run.ts";

/** If more files have failed, the machine's load is not the reason. */
const MOST_FILES_TO_REPEAT = 5;

const PARTS = [
  "cnitool",
  "injection",
  "cni-plugins",
  "kubernetes",
  "network-policy-api",
  "helm3",
  "helm4",
  "envoy",
  "former-dikastes",
  "linux-6.1",
];

const wanted = process.argv[2] ?? "";
const files = [...new Bun.Glob("{src,test,sim}/**/*.test.{ts,tsx}").scanSync()].toSorted();
const chosen = wanted === "" ? undefined : await chooseTests(wanted, files);
if (chosen?.files.length === 0) {
  console.error(`No path and no title of a test contains "${wanted}"`);
  process.exit(2);
}

const needsPrograms = chosen === undefined || chosen.files.some((file) => file.startsWith("test/"));
if (needsPrograms) await installPrograms();
const gate = chosen !== undefined || (await step("lint", [process.execPath, "scripts/lint.ts"]));
const built = !needsPrograms || (await step("build", [process.execPath, "scripts/build.ts"]));
const parts = !needsPrograms || (await step("parts", [process.execPath, "test/parts/build.ts", ...PARTS]));
if (!parts) console.log("the tests that need a missing part are skipped");

const { total, flaky } =
  chosen === undefined
    ? await repeatFailedFiles(await allTests(files))
    : { total: await testGroup({ name: "chosen", places: chosen.files, title: chosen.title }), flaky: [] };

if (!gate) console.log("not passed: the gate (lint) failed");
if (!built) console.log("not passed: the build failed");
printCounts(total, flaky);
process.exit(gate && built && countsOf(total).failed === 0 ? 0 : 1);

async function allTests(all: readonly string[]): Promise<TestReport> {
  let report = EMPTY_REPORT;
  for (const lanes of assignFiles(all)) {
    const output = lanes.length > 1 ? "blocks of a file" : "at once";
    const reports = await Promise.all(lanes.map((lane) => testGroup({ name: lane.name, places: lane.files, output })));
    report = reports.reduce(addReports, report);
  }
  return report;
}

/**
 * Runs files with failed tests once more, with nothing beside them: a test may
 * exceed its limits on an overloaded machine. What failed only at first is listed.
 */
async function repeatFailedFiles(before: TestReport): Promise<{ total: TestReport; flaky: readonly string[] }> {
  const files = failedFiles(before);
  if (files.length === 0 || files.length > MOST_FILES_TO_REPEAT) return { total: before, flaky: [] };
  const second = await testGroup({ name: "repeated", places: files });
  return { total: replaceFailedFiles(before, second), flaky: passedAlone(before, second) };
}
