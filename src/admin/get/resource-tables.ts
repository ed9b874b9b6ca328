/** Resources as tables, one for each kind, or one table of custom columns for all. */
import type { Resource } from "../../model/resource.ts";
import { type AdminKind, formatLabels } from "../kinds/kind.ts";
import { labelsOfStored, type Stored } from "../resources/stored.ts";
import { type Page, WITHOUT_LIMIT } from "../terminal/page.ts";
import { TableWriter } from "../terminal/table.ts";
import { ageOf } from "./age.ts";
import { type CustomColumn, customCell, NO_VALUE } from "./custom-columns.ts";

export interface TableLayout {
  readonly columns: "usual" | "wide" | readonly CustomColumn[];
  /** The resources may be of several namespaces. */
  readonly showsNamespace: boolean;
  readonly showsLabels: boolean;
  readonly hasHeader: boolean;
  /** The first column is the event of a watch. */
  readonly showsEvent: boolean;
  readonly page: Page;
}

export interface TableRow {
  readonly stored: Stored;
  readonly event: string;
}

interface Column {
  readonly header: string;
  cell(row: TableRow): string;
}

/** Keeps the widths of its columns from one call to the next. */
export class ResourceTables {
  private readonly tables = new Map<AdminKind | "custom", { columns: readonly Column[]; writer: TableWriter }>();

  constructor(
    private readonly layout: TableLayout,
    private readonly now: () => Date,
  ) {}

  write(rows: readonly TableRow[]): string {
    const isCustom = typeof this.layout.columns !== "string";
    const kinds = [...new Set(rows.map(({ stored }) => stored.kind))];
    const parts = isCustom && rows[0] ? [rows] : kinds.map((kind) => rows.filter(({ stored }) => stored.kind === kind));
    return parts.map((part) => this.writePart(part)).join("");
  }

  private writePart(rows: readonly TableRow[]): string {
    const kind = rows[0]?.stored.kind;
    if (kind === undefined) return "";
    const name = typeof this.layout.columns === "string" ? kind : "custom";
    const known = this.tables.get(name);
    const isLaterTable = !known && this.tables.size > 0 && this.layout.hasHeader;
    const { columns, writer } = known ?? this.open(name, kind);
    const text = writer.write(rows.map((row) => columns.map((column) => column.cell(row))));
    return isLaterTable ? `\n${text}` : text;
  }

  private open(name: AdminKind | "custom", kind: AdminKind) {
    const columns = columnsOf(kind, this.layout, this.now);
    const { hasHeader, page } = this.layout;
    const writer = new TableWriter(
      columns.map(({ header }) => header),
      {
        hasHeader,
        page: isAskedFor(this.layout) ? { ...page, width: WITHOUT_LIMIT } : page,
        leaveOutFirst: ["AGE", ...(kind.leastWanted ?? [])],
      },
    );
    const table = { columns, writer };
    this.tables.set(name, table);
    return table;
  }
}

/** Columns that the user named are not shortened or left out. */
function isAskedFor({ columns, showsLabels }: TableLayout): boolean {
  return columns !== "usual" || showsLabels;
}

function columnsOf(kind: AdminKind, layout: TableLayout, now: () => Date): readonly Column[] {
  const { columns, showsNamespace, showsLabels, showsEvent } = layout;
  const event: readonly Column[] = showsEvent ? [{ header: "EVENT", cell: (row) => row.event }] : [];
  if (typeof columns !== "string") {
    const custom = columns.map(({ header, path }) => ({
      header,
      cell: ({ stored }: TableRow) =>
        path === undefined
          ? (cellNamed(stored.kind, header)?.(stored.resource) ?? NO_VALUE)
          : customCell(path, stored.resource),
    }));
    return [...event, ...custom];
  }
  const own = kind.columns.filter(({ isWide }) => columns === "wide" || !isWide);
  return [
    ...event,
    ...(kind.namespaced && showsNamespace ? [NAMESPACE_COLUMN] : []),
    { header: "NAME", cell: ({ stored }) => stored.resource.metadata.name },
    ...own.map(({ header, cell }) => ({ header, cell: ({ stored }: TableRow) => cell(stored.resource) })),
    { header: "AGE", cell: ({ stored }) => ageOf(stored.resource.metadata.creationTimestamp, now()) },
    ...(showsLabels ? [LABELS_COLUMN] : []),
  ];
}

/** The cell of a column of the kind's wide table. */
export function cellNamed(kind: AdminKind, header: string): ((resource: Resource) => string) | undefined {
  if (header === "NAME") return ({ metadata }) => metadata.name;
  if (header === NAMESPACE_COLUMN.header && kind.namespaced) return ({ metadata }) => metadata.namespace ?? "";
  const wanted = header.replaceAll(" ", "");
  const found = kind.columns.find((column) => [column.header.replaceAll(" ", ""), column.alias].includes(wanted));
  return found && ((resource) => found.cell(resource));
}

const NAMESPACE_COLUMN: Column = {
  header: "NAMESPACE",
  cell: ({ stored }) => stored.resource.metadata.namespace ?? "",
};

const LABELS_COLUMN: Column = {
  header: "LABELS",
  cell: ({ stored }) => formatLabels(labelsOfStored(stored)) || NO_VALUE,
};
