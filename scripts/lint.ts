/** The gate: format, lint, types, layers, unused exports and dependencies, generated docs, coverage of the specification. */
import { existsSync } from "node:fs";
import { run } from "./run.ts";

const bun = process.execPath;
const tools = "node_modules/.bin";

const STEPS: readonly (readonly [name: string, command: readonly string[]])[] = [
  ["format and lint", [`${tools}/biome`, "check", "--error-on-warnings", "--log-level=warn", "."]],
  ["types", ["node_modules/typescript7/bin/tsc", "--project", "tsconfig.json"]],
  ["types of the page", ["node_modules/typescript7/bin/tsc", "--project", "src/console/page/tsconfig.json"]],
  [
    "layers",
    [
      `${tools}/depcruise`,
      "--config",
      ".dependency-cruiser.cjs",
      "--output-type",
      "err",
      ...["src", "test", "scripts", "bench", "sim"].filter((folder) => existsSync(folder)),
    ],
  ],
  ["unused code", [`${tools}/knip`, "--no-progress"]],
  ["generated docs", ["scripts/docs.ts"]],
  ["coverage", ["scripts/coverage.ts"]],
];

let failed = 0;
for (const [name, command] of STEPS) {
  const { code, output } = await run([bun, "--bun", ...command]);
  if (code !== 0) {
    failed += 1;
    console.error(`lint: ${name} failed\n${output}`);
  }
}
if (failed > 0) process.exit(1);
console.log(`lint: ${STEPS.map(([name]) => name).join(", ")}: passed`);
