/** Draws the map of a pool as text: rows of marks, each with its first address, and a legend. Pure. */
import { counted } from "../../../counted.ts";
import { formatAddress } from "../../../ip/address.ts";
import { formatPrefix, isSamePrefix, prefixSize } from "../../../ip/prefix.ts";
import type { Paint } from "../../terminal/paint.ts";
import { printable } from "../../terminal/printable.ts";
import { type Cell, cellAt, cellCount, cellSize, type PoolMap } from "./pool-map.ts";

/** One character for a cell, with its colour. */
export interface Mark {
  readonly text: string;
  readonly colour?: keyof Paint;
}

/** How cells are drawn, and what the marks mean. */
export interface MapStyle {
  mark(cell: Cell, size: bigint): Mark;
  readonly legend: readonly (readonly [Mark, string])[];
}

export interface MapPage {
  readonly paint: Paint;
  /** In columns. */
  readonly width: number;
}

const NO_BLOCK: Mark = { text: "·", colour: "faint" };
const RESERVED: Mark = { text: "×", colour: "faint" };
export const UNREADABLE: Mark = { text: "?", colour: "red" };

const WIDEST_ROW = 64;
const NARROWEST_ROW = 8;
const GROUP = 8;

export function drawMap(map: PoolMap, style: MapStyle, page: MapPage): string {
  const { paint } = page;
  const columns = columnsOf(map, page.width);
  const lines = map.blocks === 0 ? ["It has no blocks yet."] : rowLines(map, style, { paint, columns });
  return [paint.bold(titleOf(map)), ...(map.blocks === 0 ? [] : scaleOf(map, columns)), ...lines, ""].join("\n");
}

/** The meaning of the marks of all maps. */
export function drawLegend(style: MapStyle, { paint, width }: MapPage): string {
  const entries = [[NO_BLOCK, "no block"] as const, [RESERVED, "reserved"] as const, ...style.legend].map(
    ([mark, meaning]) => ({ text: `${painted(mark, paint)} ${meaning}`, width: mark.text.length + 1 + meaning.length }),
  );
  const lines: string[] = [];
  let line = "";
  let used = 0;
  for (const { text, width: needed } of entries) {
    if (line !== "" && used + 3 + needed > width) {
      lines.push(line);
      line = "";
      used = 0;
    }
    line = line === "" ? text : `${line}   ${text}`;
    used += needed + (used === 0 ? 0 : 3);
  }
  return `${[...lines, line].join("\n")}\n`;
}

/** `blue: 10.0.0.0/16, 37 of 1024 blocks, 402 of 65536 addresses in use` */
function titleOf({ pool, blocks, used }: PoolMap): string {
  const all = 2n ** BigInt(pool.blockLength - pool.cidr.length);
  const state = pool.disabled ? " (disabled)" : "";
  const sizes = `${blocks} of ${large(all)} blocks, ${used} of ${large(prefixSize(pool.cidr))} addresses in use`;
  return `${printable(pool.name)}${state}: ${formatPrefix(pool.cidr)}, ${sizes}`;
}

/** What a mark and a row are, and which part of the pool is drawn. */
function scaleOf(map: PoolMap, columns: number): readonly string[] {
  const { pool, window, cellLength } = map;
  const each = 2n ** BigInt(pool.blockLength - cellLength);
  const size = `/${cellLength}, ${large(cellSize(map))} addresses`;
  const mark = each === 1n ? `a block (${size})` : `${large(each)} blocks (${size})`;
  const row = `each row a /${cellLength - Math.log2(columns)}`;
  return [
    `Each mark is ${mark}, ${row}.`,
    ...(isSamePrefix(window, pool.cidr)
      ? []
      : [`Only ${formatPrefix(window)} is drawn: the rest of the pool has no blocks.`]),
  ];
}

const LARGEST_PLAIN = 10n ** 9n;

function large(number: bigint): string {
  return number < LARGEST_PLAIN ? String(number) : Number(number).toExponential(1);
}

/** The longest row, a power of two, that fits the page. */
function columnsOf(map: PoolMap, width: number): number {
  const space = width - labelWidth(map) - 2;
  let columns = Math.min(WIDEST_ROW, cellCount(map));
  while (columns > NARROWEST_ROW && columns + columns / GROUP - 1 > space) columns /= 2;
  return columns;
}

function labelWidth({ window, cellLength }: PoolMap): number {
  const last = formatAddress(cellAt(window, cellLength, cellCount({ window, cellLength }) - 1).network);
  return Math.max(formatAddress(window.network).length, last.length);
}

interface Grid {
  readonly paint: Paint;
  readonly columns: number;
}

/** Several rows without blocks, one after another, become one line. */
function rowLines(map: PoolMap, style: MapStyle, { paint, columns }: Grid): readonly string[] {
  const rows = cellCount(map) / columns;
  const width = labelWidth(map);
  const filled = new Set([...map.cells.keys()].map((index) => Math.floor(index / columns)));
  const lines: string[] = [];
  for (let row = 0; row < rows; ) {
    let end = row;
    while (end < rows && !filled.has(end)) end += 1;
    if (end - row > 1) {
      lines.push(paint.faint(`${"…".padEnd(width)}  ${counted(end - row, "row")} without blocks`));
      row = end;
      continue;
    }
    const label = formatAddress(cellAt(map.window, map.cellLength, row * columns).network);
    lines.push(`${label.padEnd(width)}  ${rowText(map, style, { paint, columns, start: row * columns })}`);
    row += 1;
  }
  return lines;
}

function rowText(map: PoolMap, style: MapStyle, grid: Grid & { readonly start: number }): string {
  const marks = Array.from({ length: grid.columns }, (_, column) => markAt(map, style, grid.start + column));
  const groups: string[] = [];
  for (let start = 0; start < marks.length; start += GROUP) {
    groups.push(paintedRun(marks.slice(start, start + GROUP), grid.paint));
  }
  return groups.join(" ");
}

function markAt(map: PoolMap, style: MapStyle, index: number): Mark {
  const cell = map.cells.get(index);
  if (cell === undefined) return map.reservedCells(index) ? RESERVED : NO_BLOCK;
  return cell.isUnreadable ? UNREADABLE : style.mark(cell, cellSize(map));
}

/** Neighbours of one colour are painted together. */
function paintedRun(marks: readonly Mark[], paint: Paint): string {
  const runs: { text: string; colour: keyof Paint | undefined }[] = [];
  for (const { text, colour } of marks) {
    const last = runs.at(-1);
    if (last !== undefined && last.colour === colour) last.text += text;
    else runs.push({ text, colour });
  }
  return runs.map(({ text, colour }) => (colour === undefined ? text : paint[colour](text))).join("");
}

function painted({ text, colour }: Mark, paint: Paint): string {
  return colour === undefined ? text : paint[colour](text);
}
