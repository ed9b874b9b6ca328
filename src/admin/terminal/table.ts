/**
 * Text in columns. On a terminal a table is never wider than it: long cells are shortened in the middle, except addresses; lists, and a
 * last column of sentences, are wrapped, the latter also written below the row. If that is not enough columns are left out, with "…" in the
 * header: those that the reader can best do without, then the last. In a file or a pipe, and without a header, everything is
 * whole.
 */
import { type Page, WITHOUT_LIMIT, wrappedWhole } from "./page.ts";
import { printable } from "./printable.ts";

type Row = readonly string[];

/** A header and rows, each column as wide as its widest cell. */
export function formatTable(
  header: Row,
  rows: readonly Row[],
  page?: Page,
  options: Pick<TableOptions, "leaveOutFirst" | "wrapped"> = {},
): string {
  return new TableWriter(header, page === undefined ? options : { ...options, page }).write(rows);
}

/**
 * Rows without a header, of which nothing is left out or shortened: in columns if these fit, otherwise one cell below the
 * other.
 */
export function formatRows(rows: readonly Row[], width: number): readonly string[] {
  const cells = rows.map((row) => row.map(printable));
  const count = Math.max(...cells.map((row) => row.length));
  const widths = Array.from({ length: count }, (_, column) =>
    Math.max(...cells.map((row) => row[column]?.length ?? 0)),
  );
  const lines = cells.map((row) => lineOf(row, widths));
  if (lines.every((line) => line.length <= width)) return lines;
  return cells.flatMap((row) => {
    const [first = "", ...others] = withNumber(row).filter((cell) => cell !== "");
    const below = others.flatMap((cell) => wrappedWhole(cell, width - BELOW.length));
    return [...wrappedWhole(first, width), ...below.map((line) => `${BELOW}${line}`)];
  });
}

/** The number of a row stays before what it numbers. */
function withNumber([first = "", second = "", ...others]: Row): Row {
  return /^\d+\.$/.test(first) ? [`${first} ${second}`, ...others] : [first, second, ...others];
}

export interface TableOptions {
  readonly hasHeader?: boolean;
  /** Absent: the table is as wide as it is, and nothing is painted. */
  readonly page?: Page;
  /** Colours the text of a cell, which is as wide afterwards as before. */
  readonly paintCell?: (title: string, text: string) => string;
  /** Titles of columns that are left out before the last ones if the table does not fit, in this order. */
  readonly leaveOutFirst?: readonly string[];
  /** Titles of columns with lists, which are broken over several lines where a name would be shortened. */
  readonly wrapped?: readonly string[];
}

const GAP = "   ";
/** Follows the header if columns are left out. */
const MORE = " …";

/** Writes a table in parts: the first one decides which columns are shown. */
export class TableWriter {
  private shown: { readonly columns: readonly number[]; readonly writer: FittedTable } | undefined;

  constructor(
    private readonly header: Row,
    private readonly options: TableOptions = {},
  ) {}

  /** The first part begins with the header. */
  write(rows: readonly Row[]): string {
    this.shown ??= this.choose(rows);
    const { columns, writer } = this.shown;
    return writer.write(rows.map((row) => picked(row, columns)));
  }

  private choose(rows: readonly Row[]) {
    const { leaveOutFirst = [] } = this.options;
    let columns: readonly number[] = this.header.map((_, column) => column);
    for (const title of leaveOutFirst) {
      if (this.tableOf(columns).fits(rows.map((row) => picked(row, columns)))) break;
      columns = columns.filter((column) => this.header[column] !== title);
    }
    return { columns, writer: this.tableOf(columns) };
  }

  private tableOf(columns: readonly number[]): FittedTable {
    const leftOut = columns.length === this.header.length ? "" : MORE;
    return new FittedTable(picked(this.header, columns), this.options, leftOut);
  }
}

function picked(row: Row, columns: readonly number[]): Row {
  return columns.map((column) => row[column] ?? "");
}

/** A column never gets narrower than its widest cell so far, except to fit the page. */
class FittedTable {
  private readonly widths: number[];
  private readonly isProse: boolean[];
  private readonly isAddress: boolean[];
  private isHeaderDue: boolean;
  private shownColumns: number;

  /** `leftOut`: what follows the header if columns were left out before. */
  constructor(
    private readonly header: Row,
    private readonly options: TableOptions,
    private readonly leftOut = "",
  ) {
    const { hasHeader = true } = options;
    this.widths = header.map((title) => (hasHeader ? title.length : 0));
    this.isProse = header.map(() => false);
    this.isAddress = header.map(() => false);
    this.isHeaderDue = hasHeader;
    this.shownColumns = header.length;
  }

  /** Whether all columns are shown beside each other with these rows. */
  fits(rows: readonly Row[]): boolean {
    this.measure(rows.map((row) => row.map(printable)));
    return this.fitted().widths.length === this.header.length;
  }

  write(rows: readonly Row[]): string {
    const cells = rows.map((row) => row.map(printable));
    this.measure(cells);
    const layout = this.fitted();
    // Later parts have the columns of the first.
    this.shownColumns = layout.widths.length;
    const lines = [
      ...(this.isHeaderDue ? [this.headerLine(layout)] : []),
      ...cells.flatMap((row) => linesOf(row, layout, this.paintColumn)),
    ];
    this.isHeaderDue = false;
    return lines.map((line) => `${line}\n`).join("");
  }

  private readonly paintColumn = (column: number, text: string): string =>
    this.options.paintCell?.(this.header[column] ?? "", text) ?? text;

  private measure(cells: readonly Row[]): void {
    for (const row of cells) {
      for (const [column, cell] of row.entries()) {
        this.widths[column] = Math.max(this.widths[column] ?? 0, cell.length);
        this.isProse[column] ||= cell.includes(" ");
        this.isAddress[column] ||= ADDRESS.test(cell);
      }
    }
  }

  private headerLine({ widths, below }: Layout): string {
    const { page } = this.options;
    const isWhole = widths.length === this.header.length - (below === undefined ? 0 : 1);
    const line = `${lineOf(this.header, widths)}${isWhole ? this.leftOut : MORE}`;
    return page === undefined ? line : page.paint.bold(line);
  }

  private fitted(): Layout {
    const { page, hasHeader = true } = this.options;
    const available = (hasHeader ? (page?.width ?? WITHOUT_LIMIT) : WITHOUT_LIMIT) - this.leftOut.length;
    const last = this.header.length - 1;
    const isLastProse = this.isProse[last] === true;
    const lists = this.header.flatMap((title, column) => (this.options.wrapped?.includes(title) ? [column] : []));
    const columns = this.widths.slice(0, this.shownColumns).map((width, column) => {
      const isWrapped = lists.includes(column) || (isLastProse && column === last);
      const least = lists.includes(column) ? LEAST_LIST : isWrapped ? LEAST_PROSE : LEAST_NAME;
      const isFixed = this.isAddress[column] === true && !isWrapped;
      const narrowest = Math.min(width, Math.max(this.header[column]?.length ?? 0, least));
      return { width, least: isFixed ? width : narrowest, isFixed };
    });
    const widths = fitColumns(columns, available);
    if (widths.length > last || !isLastProse) return { widths, wraps: isLastProse ? [...lists, last] : lists };
    const below = { title: this.header[last] ?? "", column: last, width: available };
    return { widths: fitColumns(columns.slice(0, last), available), wraps: lists, below };
  }
}

/** An address or a CIDR, or a list that begins with one: a part of it would be another one. */
const ADDRESS = /^(?:\d{1,3}(?:\.\d{1,3}){3}|[\da-f]{0,4}:[\da-f:.]*)(?:\/\d{1,3})?(?:,|$)/i;

interface Layout {
  /** Of the columns that are shown. */
  readonly widths: readonly number[];
  /** Columns whose cells take several lines. */
  readonly wraps: readonly number[];
  /** The last column, if it is written below each row. */
  readonly below?: { readonly title: string; readonly column: number; readonly width: number };
}

interface Column {
  readonly width: number;
  /** It is left out rather than made narrower. */
  readonly least: number;
  /** Not made narrower even if it is the only one that is left. */
  readonly isFixed?: boolean;
}

/** Enough for the beginning and the end of a name. */
const LEAST_NAME = 12;
const LEAST_PROSE = 24;
const LEAST_LIST = 18;

/**
 * The widths of the columns that fit: all, or those before the first that does not. The widest are shortened first. Only a
 * fixed first column may be wider than the page.
 */
export function fitColumns(columns: readonly Column[], available: number): readonly number[] {
  const sum = (values: readonly number[]) =>
    values.reduce((total, value) => total + value, GAP.length * (values.length - 1));
  const roomFor = (count: number) => available - (count < columns.length ? MORE.length : 0);
  let count = columns.length;
  while (count > 1 && sum(columns.slice(0, count).map(({ least }) => least)) > roomFor(count)) count -= 1;

  const shown = columns.slice(0, count);
  const widths = shown.map(({ width }) => width);
  let excess = sum(widths) - roomFor(count);
  const widestFirst = shown
    .map((column, index) => ({ ...column, index }))
    .sort((left, right) => right.width - left.width || right.index - left.index);
  for (const { index, width, least, isFixed = false } of widestFirst) {
    if (excess <= 0) break;
    if (isFixed) continue;
    const isOnly = count === 1;
    const cut = Math.min(excess, width - (isOnly ? 1 : least));
    widths[index] = width - cut;
    excess -= cut;
  }
  return widths;
}

type PaintColumn = (column: number, text: string) => string;

function linesOf(row: Row, { widths, wraps, below }: Layout, paint: PaintColumn): readonly string[] {
  const cells = widths.map((width, column) => {
    const cell = row[column] ?? "";
    return wraps.includes(column) ? wrappedWhole(cell, width) : [cell];
  });
  const height = Math.max(...cells.map(({ length }) => length));
  const lines = Array.from({ length: height }, (_, line) => cells.map((cell) => cell[line] ?? ""));
  const under = below === undefined ? [] : linesBelow(row[below.column] ?? "", below);
  return [...lines.map((line) => lineOf(line, widths, paint)), ...under];
}

const BELOW = "  ";

function linesBelow(cell: string, { title, width }: NonNullable<Layout["below"]>): readonly string[] {
  if (cell === "") return [];
  return wrappedWhole(`${title}: ${cell}`, width - BELOW.length).map((line) => `${BELOW}${line}`);
}

function lineOf(row: Row, widths: readonly number[], paint: PaintColumn = (_, text) => text): string {
  const cells = widths.map((width, column) => shortened(row[column] ?? "", width));
  const last = cells.findLastIndex((cell) => cell !== "");
  return cells
    .slice(0, last + 1)
    .map(
      (cell, column) =>
        `${paint(column, cell)}${" ".repeat(column === last ? 0 : (widths[column] ?? 0) - cell.length)}`,
    )
    .join(GAP)
    .trimEnd();
}

/** The beginning and the end: names of the same kind often differ in either. */
function shortened(text: string, width: number): string {
  if (text.length <= width) return text;
  const end = Math.floor((width - 1) / 2);
  return `${text.slice(0, width - 1 - end)}…${text.slice(text.length - end)}`;
}
