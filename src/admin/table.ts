import { printable } from "./printable.ts";

/** Text in columns: a header and rows, each column as wide as its widest cell. */
export function formatTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [header, ...rows.map((row) => row.map(printable))];
  const widths = header.map((_, column) => Math.max(...lines.map((line) => (line[column] ?? "").length)));
  return lines
    .map(
      (line) =>
        `${line
          .map((cell, column) => cell.padEnd(widths[column] ?? 0))
          .join("   ")
          .trimEnd()}\n`,
    )
    .join("");
}
