/** The results of the benchmark of policy as text. Pure. */
import type { ChangeTimes, Start, WorkResult } from "./policy-measurements.ts";
import { quantileOf } from "./statistics.ts";

export interface SystemResult extends WorkResult {
  readonly name: string;
  readonly starts: readonly Start[];
}

interface Row {
  readonly title: string;
  readonly unit: string;
  readonly digits: number;
  readonly value: (result: SystemResult) => number;
}

const median = (values: readonly number[]) => quantileOf(values, 0.5);

const ROWS: readonly Row[] = [
  time("start to first full apply, wall", ({ starts }) => median(starts.map((start) => start.wallMilliseconds)), 0),
  time("start to first full apply, CPU", ({ starts }) => median(starts.map((start) => start.cpuMilliseconds)), 0),
  megabytes("memory settled (resident)", ({ memory }) => memory.residentBytes),
  megabytes("memory settled (proportional)", ({ memory }) => memory.proportionalBytes),
  megabytes("memory after the changes (resident)", ({ memoryAfterwards }) => memoryAfterwards.residentBytes),
  { title: "idle CPU", unit: "%", digits: 3, value: ({ idle }) => idle * 100 },
  ...changeRows("remote pod -> element", ({ changes }) => changes.remote),
  ...changeRows("policy edit -> rule", ({ changes }) => changes.policy),
  ...changeRows("new local pod -> its chain", ({ changes }) => changes.local),
];

/** The ratio of each to the first. */
export function policyTable(results: readonly SystemResult[]): string {
  const [baseline] = results;
  const header = ["", ...results.map(({ name }) => name), "ratio"];
  const lines = ROWS.map(({ title, unit, digits, value }) => {
    const values = results.map(value);
    const last = values.at(-1) ?? Number.NaN;
    const ratio = baseline === undefined || results.length < 2 ? "" : (last / value(baseline)).toFixed(2);
    return [title, ...values.map((each) => `${each.toFixed(digits)} ${unit}`), ratio];
  });
  return markdown([header, ...lines]);
}

/** A Markdown table that is also readable in a terminal. */
export function markdown(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const align = (cell: string, column: number) =>
    column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0);
  const [header = "", ...rest] = rows.map((row) => `| ${row.map(align).join(" | ")} |`);
  const rule = `|${widths.map((width, column) => (column === 0 ? "-".repeat(width + 2) : `${"-".repeat(width + 1)}:`)).join("|")}|`;
  return ["", header, rule, ...rest, ""].join("\n");
}

function time(title: string, value: Row["value"], digits = 2): Row {
  return { title, unit: "ms", digits, value };
}

function megabytes(title: string, bytes: Row["value"]): Row {
  return { title, unit: "MB", digits: 1, value: (result) => bytes(result) / 1_000_000 };
}

function changeRows(title: string, times: (result: SystemResult) => ChangeTimes): readonly Row[] {
  const quantile = (share: number) => (result: SystemResult) => quantileOf(times(result).wallMilliseconds, share);
  return [
    time(`${title}, median`, quantile(0.5)),
    time(`${title}, minimum`, quantile(0)),
    time(`${title}, p99`, quantile(0.99)),
    time(`${title}, CPU`, (result) => times(result).cpuMilliseconds),
  ];
}
