/**
 * A table of any length, of which only the rows in sight are in the document. One row is chosen by the keyboard: arrows, Page Up and
 * Page Down, Home and End; Enter opens it.
 */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { useVirtualizer, useWidth } from "./virtual.ts";

export interface VirtualRowsProps<Row> {
  /** Also of its parts in the document. */
  readonly name: string;
  readonly label: string;
  readonly columns: readonly string[];
  readonly rows: readonly Row[];
  keyOf(row: Row): string;
  classOf?(row: Row): string;
  cells(row: Row): readonly ComponentChildren[];
  /** Of each row, in pixels: a number for wide and one for narrow tables. */
  readonly heights: readonly [wide: number, narrow: number];
  readonly opened: string | undefined;
  open(row: Row): void;
  /** New rows at the top do not move what is being read further down. */
  readonly growsAtTop?: boolean;
}

/** In pixels. Below it a row has several lines. */
const NARROW = 720;
/** Below it the less important columns are left out. */
const MEDIUM = 1_000;
const PAGE_ROWS = 20;
/** In pixels, as in the style. It covers the first row while one scrolls. */
const HEAD_HEIGHT = 30;

export function VirtualRows<Row>(props: VirtualRowsProps<Row>) {
  const { name, label, columns, rows, keyOf, opened, heights } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const width = useWidth(scroller);
  const height = width < NARROW ? heights[1] : heights[0];
  const virtual = useVirtualizer(scroller, rows.length, height, HEAD_HEIGHT);
  const [chosen, choose] = useState<string | undefined>(opened);
  useSteadyPlace(scroller, rows, keyOf, height, props.growsAtTop === true);

  const chosenIndex = chosen === undefined ? -1 : rows.findIndex((row) => keyOf(row) === chosen);
  const pick = (index: number) => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, index))];
    if (row === undefined) return;
    choose(keyOf(row));
    virtual.scrollToIndex(rows.indexOf(row), { align: "auto" });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const row = rows[chosenIndex];
    const step = STEPS[event.key];
    if (event.key === "Enter" && row !== undefined) props.open(row);
    else if (step !== undefined && !event.altKey && !event.ctrlKey && !event.metaKey)
      pick(step(chosenIndex, rows.length));
    else return;
    event.preventDefault();
  };
  const items = virtual.getVirtualItems();
  const isInSight = items.some(({ index }) => index === chosenIndex);
  return (
    <div
      class={`rows rows-${name} ${width < NARROW ? "is-narrow" : width < MEDIUM ? "is-medium" : ""}`}
      ref={scroller}
      role="grid"
      aria-label={label}
      aria-rowcount={rows.length + 1}
      aria-colcount={columns.length}
      tabIndex={0}
      {...(isInSight ? { "aria-activedescendant": `${name}-${chosenIndex}` } : {})}
      onKeyDown={onKeyDown}
    >
      <div class="row row-head" role="row" aria-rowindex={1}>
        {columns.map((column) => (
          <span role="columnheader" key={column}>
            {column}
          </span>
        ))}
      </div>
      <div class="rows-space" role="rowgroup" style={{ height: `${virtual.getTotalSize()}px` }}>
        {items.map(({ index, start }) => (
          <VirtualRow
            key={index}
            {...props}
            index={index}
            start={start}
            height={height}
            isChosen={index === chosenIndex}
            choose={choose}
          />
        ))}
      </div>
    </div>
  );
}

const STEPS: Readonly<Record<string, (index: number, count: number) => number>> = {
  ArrowDown: (index) => index + 1,
  j: (index) => index + 1,
  ArrowUp: (index) => index - 1,
  k: (index) => index - 1,
  PageDown: (index) => index + PAGE_ROWS,
  PageUp: (index) => index - PAGE_ROWS,
  Home: () => 0,
  End: (_, count) => count - 1,
};

interface VirtualRowProps<Row> extends VirtualRowsProps<Row> {
  readonly index: number;
  readonly start: number;
  readonly height: number;
  readonly isChosen: boolean;
  choose(key: string): void;
}

function VirtualRow<Row>({ index, start, height, isChosen, choose, ...props }: VirtualRowProps<Row>) {
  const { name, rows, keyOf, classOf, cells, opened, open, columns } = props;
  const row = rows[index];
  if (row === undefined) return null;
  const key = keyOf(row);
  const classes = ["row", classOf?.(row) ?? "", isChosen ? "is-chosen" : "", key === opened ? "is-open" : ""];
  return (
    <div
      id={`${name}-${index}`}
      class={classes.filter((each) => each !== "").join(" ")}
      role="row"
      aria-rowindex={index + 2}
      aria-selected={key === opened}
      style={{ transform: `translateY(${start}px)`, height: `${height}px` }}
      onClick={() => {
        choose(key);
        open(row);
      }}
    >
      {cells(row).map((cell, column) => (
        <span role="gridcell" key={columns[column]} class={`cell cell-${column}`}>
          {cell}
        </span>
      ))}
    </div>
  );
}

/** Keeps the first row in sight where it is when rows come above it; at the top new rows are seen. */
function useSteadyPlace<Row>(
  scroller: { readonly current: HTMLDivElement | null },
  rows: readonly Row[],
  keyOf: (row: Row) => string,
  height: number,
  isOn: boolean,
): void {
  const before = useRef<{ readonly key: string; readonly index: number } | undefined>(undefined);
  useLayoutEffect(() => {
    const { current } = scroller;
    if (!isOn || current === null) return;
    const { scrollTop } = current;
    const was = before.current;
    if (was !== undefined && scrollTop > height) {
      const isAt = (index: number) => rows.slice(index, index + 1).some((row) => keyOf(row) === was.key);
      const moved = isAt(was.index) ? was.index : rows.findIndex((row) => keyOf(row) === was.key);
      if (moved >= 0 && moved !== was.index) current.scrollTop = scrollTop + (moved - was.index) * height;
    }
    const index = Math.floor(current.scrollTop / height);
    const first = rows[index];
    before.current = first === undefined ? undefined : { key: keyOf(first), index };
  });
}
