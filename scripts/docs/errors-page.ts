/** Generates docs/errors.md from the table of errors. */
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
    "A CNI command that fails prints one JSON object on stdout (`cniVersion`, `code`, `msg`, `details`) and exits with code 1.",
    "Codes below 100 are defined by CNI; 100 and up are specific to this product.",
    "Retry: `no` (fails again until something is changed), `later` (the cause may be temporary), `after reading again` (the attempt was based on data",
    "that have changed since: read them again and decide again).",
    "",
    "| Code | Kind | Meaning | Remedy | Retry |",
    "|---|---|---|---|---|",
    ...rows,
    "",
  ].join("\n");
}
