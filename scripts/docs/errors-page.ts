/** docs/errors.md, from the one table of errors. */
import { ERROR_TABLE } from "../../src/errors.ts";

export function errorsPage(): string {
  const rows = Object.entries(ERROR_TABLE).map(
    ([kind, row]) => `| ${row.code} | \`${kind}\` | ${row.meaning} | ${row.remedy} |`,
  );
  return [
    "# Errors",
    "",
    "<!-- Written by `make fmt` from src/errors.ts. Do not edit. -->",
    "",
    "A command that fails prints one JSON object on stdout (`cniVersion`, `code`, `msg`, `details`) and exits with 1.",
    "Codes below 100 are CNI's own; 100 and up are this product's.",
    "",
    "| Code | Kind | What happened | What to do |",
    "|---|---|---|---|",
    ...rows,
    "",
  ].join("\n");
}
