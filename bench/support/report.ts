/** Prints the results of a benchmark as tables and writes them, with all samples, as JSON to bench/results/. */
import { mkdirSync } from "node:fs";
import { cpus, release } from "node:os";
import { join } from "node:path";
import type { CandidateResult, ComparisonResult } from "./comparison.ts";
import type { PeakMemory } from "./peak-memory.ts";

export async function report(name: string, results: readonly ComparisonResult[]): Promise<void> {
  for (const result of results) console.log(tableOf(result));
  await writeResults(name, { results });
}

/** With the commit and the host. */
export async function writeResults(name: string, content: object): Promise<void> {
  const folder = join(import.meta.dir, "../results");
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${name}.json`);
  await Bun.write(file, `${JSON.stringify({ name, ...environment(), ...content }, null, 2)}\n`);
  console.log(`written to bench/results/${name}.json`);
}

/** A Markdown table that is also readable in a terminal. */
export function tableOf(result: ComparisonResult): string {
  const atOnce = result.concurrency === 1 ? "" : `, ${result.concurrency} at once`;
  const header = [
    "candidate",
    "median ms",
    "p95 ms",
    "min ms",
    "ratio",
    "difference ms",
    "CPU ms",
    "memory MB (resident)",
  ];
  const rows = [header, ...result.candidates.map((candidate) => cellsOf(candidate, result))];
  const widths = header.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) => `| ${row.map((cell, column) => align(cell, widths, column)).join(" | ")} |`);
  const rule = `|${widths.map((width, column) => (column === 0 ? "-".repeat(width + 2) : `${"-".repeat(width + 1)}:`)).join("|")}|`;
  const title = `${result.title} (${result.rounds} rounds, interleaved${atOnce}; ratio to ${result.baseline})`;
  return ["", title, "", lines[0], rule, ...lines.slice(1), ""].join("\n");
}

function cellsOf(result: CandidateResult, { concurrency }: ComparisonResult): readonly string[] {
  const { wall, cpu, peakMemory, ratio, difference } = result;
  return [
    result.name,
    wall.median.toFixed(2) + (concurrency === 1 ? "" : ` (${(wall.median / concurrency).toFixed(2)} each)`),
    wall.p95.toFixed(2),
    wall.minimum.toFixed(2),
    `${ratio.toFixed(2)} x`,
    `${difference < 0 ? "" : "+"}${difference.toFixed(2)}`,
    cpu === undefined ? "" : cpu.median.toFixed(2),
    peakMemory === undefined ? "" : memoryCell(peakMemory),
  ];
}

function memoryCell({ ownBytes, residentBytes }: PeakMemory): string {
  const own = ownBytes === undefined ? "" : `${(ownBytes / 1_000_000).toFixed(1)} `;
  return `${own}(${(residentBytes / 1_000_000).toFixed(1)})`;
}

function align(cell: string, widths: readonly number[], column: number): string {
  return column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0);
}

/** The commit and the host of a measurement that is made now. */
export function environment() {
  const commit = Bun.spawnSync(["git", "rev-parse", "--short", "HEAD"], { stderr: "ignore" }).stdout.toString().trim();
  return {
    time: new Date().toISOString(),
    commit,
    host: { processor: cpus()[0]?.model ?? "unknown", processors: cpus().length, kernel: release(), bun: Bun.version },
  };
}
