/** docs/errors.md, from the one table of errors. */
import { ERROR_TABLE } from "../../src/errors.ts";

export function errorsPage(): string {
  const rows = Object.entries(ERROR_TABLE).map(
    ([kind, row]) => `| ${row.code} | \`${kind}\` | ${row.meaning} | ${row.remedy} | ${row.retry} |`,
  );
  return [
    "# Errors",
    "",
    "<!-- Written by `make fmt` from src/errors.ts. Do not edit. -->",
    "",
    "A command that fails prints one JSON object on stdout (`cniVersion`, `code`, `msg`, `details`) and exits with 1.",
    "Codes below 100 are CNI's own; 100 and up are this product's.",
    "Try again: `no` until somebody changes something; `later`, because the cause may pass by itself; `after reading again`, because the attempt",
    "rested on something that has changed since: read it again and decide again.",
    "",
    "| Code | Kind | What happened | What to do | Try again? |",
    "|---|---|---|---|---|",
    ...rows,
    "",
  ].join("\n");
}
