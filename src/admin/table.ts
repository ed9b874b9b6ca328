import { printable } from "./printable.ts";

type Row = readonly string[];

/** Text in columns: a header and rows, each column as wide as its widest cell. */
export function formatTable(header: Row, rows: readonly Row[]): string {
  return new TableWriter(header).write(rows);
}

/** Writes a table in parts: a column never gets narrower than it was in an earlier part. */
export class TableWriter {
  private readonly widths: number[];
  private isHeaderDue: boolean;

  constructor(
    private readonly header: Row,
    { hasHeader = true }: { readonly hasHeader?: boolean } = {},
  ) {
    this.widths = header.map((title) => (hasHeader ? title.length : 0));
    this.isHeaderDue = hasHeader;
  }

  /** The first part begins with the header. */
  write(rows: readonly Row[]): string {
    const cells = rows.map((row) => row.map(printable));
    for (const row of cells) {
      for (const [column, cell] of row.entries()) {
        this.widths[column] = Math.max(this.widths[column] ?? 0, cell.length);
      }
    }
    const lines = this.isHeaderDue ? [this.header, ...cells] : cells;
    this.isHeaderDue = false;
    return lines.map((line) => `${this.format(line)}\n`).join("");
  }

  private format(line: Row): string {
    return line
      .map((cell, column) => cell.padEnd(this.widths[column] ?? 0))
      .join("   ")
      .trimEnd();
  }
}
