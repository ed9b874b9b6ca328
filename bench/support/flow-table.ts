/** The results of the benchmark of flows as tables. Pure. */
import type { ConnectResult, ObserverResult } from "./flow-measurements.ts";
import { summarize } from "./statistics.ts";

/** `results`: the first one is the baseline. */
export function connectTable(results: readonly ConnectResult[]): string {
  const [baseline] = results;
  if (baseline === undefined) throw new Error("no results");
  const median = (values: readonly number[]) => summarize(values).median;
  const cell = (values: readonly number[], others: readonly number[]) =>
    `${median(values).toFixed(1)} | ${ratio(values, others).toFixed(3)}`;
  const rows = results.map(
    (result) =>
      `| ${result.name} | ${cell(result.connectMicroseconds, baseline.connectMicroseconds)} | ${cell(result.cpuMicroseconds, baseline.cpuMicroseconds)} | ${median(result.perSecond).toFixed(0)} | ${ratio(result.perSecond, baseline.perSecond).toFixed(3)} |`,
  );
  const rounds = baseline.connectMicroseconds.length;
  return [
    "",
    `A connection between two pods (${rounds} rounds, in turns; ratios: medians of those within a round)`,
    "",
    "| | connect µs | ratio | processor µs per connection | ratio | connections/s, one thread | ratio |",
    "|---|---:|---:|---:|---:|---:|---:|",
    ...rows,
    "",
  ].join("\n");
}

/** What slows down the machine for a while affects both candidates of a round. */
function ratio(values: readonly number[], others: readonly number[]): number {
  return summarize(values.map((value, index) => value / (others[index] ?? Number.NaN))).median;
}

export function observerTable(results: readonly ObserverResult[]): string {
  const rows = results.map(
    ({ observer, load, wanted, perSecond, share, anonymousBytes, residentBytes, made, seen, losses }) =>
      `| ${wanted} ${load} | ${observer === "poll" ? "list of the table each 5 s" : "collector"} | ${perSecond.toFixed(0)} | ${(share * 100).toFixed(1)} % | ${megabytes(anonymousBytes)} (${megabytes(residentBytes)}) | ${missed(made, seen)} | ${losses} |`,
  );
  return [
    "",
    "| per second | observer | reached | of a processor | memory MB (resident) | not seen | losses that it names |",
    "|---|---|---:|---:|---:|---:|---|",
    ...rows,
    "",
  ].join("\n");
}

function megabytes(bytes: number): string {
  return (bytes / 1_000_000).toFixed(1);
}

function missed(made: number, seen: number): string {
  return `${Math.max(0, made - seen)} of ${made} (${((Math.max(0, made - seen) / made) * 100).toFixed(1)} %)`;
}
