/**
 * `make test`: runs the gate, then all tests, each group in its own process;
 * prints every skipped test with its reason, and on the last line the counts
 * that the runner recorded.
 */
import { installPrograms } from "./programs/install.ts";
import { addReports, EMPTY_REPORT } from "./test-report.ts";
import { printCounts, step, testGroup } from "./test-run.ts";

await installPrograms();
const gate = await step("lint", [process.execPath, "scripts/lint.ts"]);
const built = await step("build", [process.execPath, "scripts/build.ts"]);
const parts = await step("parts", [process.execPath, "test/parts/build.ts", "cnitool", "cni-plugins", "kubernetes"]);
if (!parts) console.log("the tests that need a missing part are skipped");

const groups = [
  await testGroup({ name: "unit", place: "./src" }),
  await testGroup({ name: "system", place: "./test" }),
];
const total = groups.reduce(addReports, EMPTY_REPORT);

if (!gate) console.log("not passed: the gate (lint) failed");
if (!built) console.log("not passed: the build failed");
printCounts(total);
process.exit(gate && built && total.failed === 0 ? 0 : 1);
