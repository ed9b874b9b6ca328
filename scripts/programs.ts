/**
 * Part of the gate: no test, benchmark or script starts a program that scripts/programs/table.ts does not declare, and no
 * target of the Makefile one that it does not install.
 */
import { readFileSync } from "node:fs";
import { Glob } from "bun";
import { programsNotInstalled } from "./programs/not-installed.ts";
import { startedPrograms } from "./programs/started-programs.ts";
import { NOT_INSTALLED, PACKAGES } from "./programs/table.ts";
import { TARGETS } from "./programs/targets.ts";
import { undeclaredPrograms } from "./programs/undeclared.ts";

const PLACES = ["{test,bench,scripts}/**/*.ts", "src/**/*.test.ts"];

const paths = PLACES.flatMap((place) => [...new Glob(place).scanSync(".")]).toSorted();
const files = new Map(paths.map((path) => [path, readFileSync(path, "utf8")]));
const starts = startedPrograms(files);
const problems = [
  ...undeclaredPrograms(starts, new Set([...Object.keys(PACKAGES), ...NOT_INSTALLED])),
  ...Object.entries(TARGETS).flatMap(([name, target]) => programsNotInstalled(name, target, files, starts)),
];
for (const problem of problems) console.error(problem);
if (problems.length > 0) process.exit(1);
