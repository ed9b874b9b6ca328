/** Part of the gate: docs/coverage.md has a row for every clause of the specification, and refers only to code and tests that exist. */
import { readFileSync, statSync } from "node:fs";
import { coverageProblems } from "./docs/coverage-problems.ts";
import { SPEC_CLAUSES } from "./docs/spec-clauses.ts";

const PAGE = "docs/coverage.md";

function read(path: string): string | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return undefined;
  return found.isDirectory() ? "" : readFileSync(path, "utf8");
}

const problems = coverageProblems(read(PAGE) ?? "", SPEC_CLAUSES, { read });
for (const problem of problems) console.error(`${PAGE}: ${problem}`);
if (problems.length > 0) process.exit(1);
