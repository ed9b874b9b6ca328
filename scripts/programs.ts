/** Part of the gate: no test, benchmark or script starts a program that scripts/programs/table.ts does not declare. */
import { readFileSync } from "node:fs";
import { Glob } from "bun";
import { NOT_INSTALLED, PACKAGES } from "./programs/table.ts";
import { undeclaredPrograms } from "./programs/undeclared.ts";

const PLACES = ["{test,bench,scripts}/**/*.ts", "src/**/*.test.ts"];

const paths = PLACES.flatMap((place) => [...new Glob(place).scanSync(".")]).toSorted();
const files = new Map(paths.map((path) => [path, readFileSync(path, "utf8")]));
const problems = undeclaredPrograms(files, new Set([...Object.keys(PACKAGES), ...NOT_INSTALLED]));
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exit(1);
