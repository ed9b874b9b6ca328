/** A map of many equal cells, of which only those in sight are in the document. Arrows choose one, Enter opens it. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { useVirtualizer, useWidth } from "./virtual.ts";

export interface CellLook {
  readonly class: string;
  readonly content?: ComponentChildren;
  /** From the bottom, from 0 to 1. */
  readonly fill?: number;
}

interface MapGridProps {
  /** Also of its cells in the document. */
  readonly name: string;
  readonly label: string;
  readonly count: number;
  /** At least. */
  readonly cellWidth: number;
  readonly cellHeight: number;
  /** So many cells in a row that rows begin at the same part of an address; they fill the width. */
  readonly powerOfTwo?: boolean;
  /** In words. */
  labelOf(index: number): string;
  lookOf(index: number): CellLook;
  readonly opened: number;
  open(index: number): void;
}

const GAP = 3;

export function MapGrid(props: MapGridProps) {
  const { name, label, count, cellWidth, cellHeight, powerOfTwo, opened, open } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const width = useWidth(scroller);
  const fitting = Math.max(1, Math.floor((width + GAP) / (cellWidth + GAP)));
  const columns = powerOfTwo === true ? 2 ** Math.floor(Math.log2(fitting)) : fitting;
  const rowCount = Math.ceil(count / columns);
  const virtual = useVirtualizer(scroller, rowCount, cellHeight + GAP);
  const [chosen, choose] = useState(Math.max(0, opened));
  useLayoutEffect(() => {
    if (opened >= 0) virtual.scrollToIndex(Math.floor(opened / columns), { align: "auto" });
  }, [virtual, columns]);
  const pick = (index: number) => {
    const next = Math.max(0, Math.min(count - 1, index));
    choose(next);
    virtual.scrollToIndex(Math.floor(next / columns), { align: "auto" });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = STEPS[event.key];
    if (event.key === "Enter" || event.key === " ") open(chosen);
    else if (step !== undefined && !event.altKey && !event.ctrlKey && !event.metaKey)
      pick(step(chosen, columns, count));
    else return;
    event.preventDefault();
  };
  const items = virtual.getVirtualItems();
  const isInSight = items.some(({ index }) => index === Math.floor(chosen / columns));
  return (
    <div
      class={`map map-${name}`}
      ref={scroller}
      role="grid"
      aria-label={label}
      aria-rowcount={rowCount}
      aria-colcount={columns}
      tabIndex={0}
      {...(isInSight && count > 0 ? { "aria-activedescendant": `${name}-${chosen}` } : {})}
      onKeyDown={onKeyDown}
    >
      <div class="map-space" role="rowgroup" style={{ height: `${virtual.getTotalSize()}px` }}>
        {items.map(({ index, start }) => (
          <div
            key={index}
            role="row"
            aria-rowindex={index + 1}
            class="map-row"
            style={{ transform: `translateY(${start}px)` }}
          >
            {cellsOfRow(index, columns, count).map((cell) => (
              <Cell
                key={cell}
                {...props}
                index={cell}
                isChosen={cell === chosen}
                isOpen={cell === opened}
                choose={choose}
              />
            ))}
          </div>
        ))}
      </div>
    </div>
  );
}

function cellsOfRow(row: number, columns: number, count: number): readonly number[] {
  const first = row * columns;
  return Array.from({ length: Math.min(columns, count - first) }, (_, column) => first + column);
}

const STEPS: Readonly<Record<string, (index: number, columns: number, count: number) => number>> = {
  ArrowRight: (index) => index + 1,
  l: (index) => index + 1,
  ArrowLeft: (index) => index - 1,
  h: (index) => index - 1,
  ArrowDown: (index, columns) => index + columns,
  j: (index, columns) => index + columns,
  ArrowUp: (index, columns) => index - columns,
  k: (index, columns) => index - columns,
  Home: () => 0,
  End: (_, __, count) => count - 1,
};

interface CellProps extends MapGridProps {
  readonly index: number;
  readonly isChosen: boolean;
  readonly isOpen: boolean;
  choose(index: number): void;
}

function Cell({
  name,
  index,
  isChosen,
  isOpen,
  choose,
  open,
  labelOf,
  lookOf,
  cellWidth,
  cellHeight,
  powerOfTwo,
}: CellProps) {
  const look = lookOf(index);
  const label = labelOf(index);
  return (
    <div
      id={`${name}-${index}`}
      role="gridcell"
      aria-label={label}
      aria-selected={isOpen}
      title={label}
      class={`tile ${look.class} ${isChosen ? "is-chosen" : ""} ${isOpen ? "is-open" : ""}`}
      style={{ flex: powerOfTwo === true ? "1 1 0" : `0 0 ${cellWidth}px`, height: `${cellHeight}px` }}
      onClick={() => {
        choose(index);
        open(index);
      }}
    >
      {look.fill !== undefined && <span class="tile-fill" style={{ height: `${look.fill * 100}%` }} />}
      {look.content}
    </div>
  );
}
