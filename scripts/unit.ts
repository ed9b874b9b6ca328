/** `make unit`: the gate, then the tests beside their sources, which need neither root nor servers, on all cores. */
import { countsOf } from "./test-report.ts";
import { printCounts, step, testGroup } from "./test-run.ts";

const gate = await step("lint", [process.execPath, "scripts/lint.ts"]);
const report = await testGroup({ name: "unit", places: ["src"], runner: ["--parallel", "--only-failures"] });
printCounts(report);
process.exit(gate && countsOf(report).failed === 0 ? 0 : 1);
