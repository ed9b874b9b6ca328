/**
 * The matrix as a picture: a row for each source, a column for each destination. A cell has a sign, so that it does not depend on colours, on light
 * and dark backgrounds, and says in its tooltip what may be sent. Text is escaped; there are neither scripts nor links. Pure.
 */
import type { Group } from "../../../policy/what-if/reach-groups.ts";
import { EVERYTHING } from "../../../policy/what-if/reach-rows.ts";
import { printable } from "../../terminal/printable.ts";

/** What one group may send to another. */
export interface MatrixCell {
  readonly from: Group;
  readonly to: Group;
  /** `everything`, `nothing`, `TCP 80`. */
  readonly before: string;
  readonly after: string;
}

export interface Matrix {
  readonly groups: readonly Group[];
  readonly cells: readonly MatrixCell[];
  /** Whether two states are compared. */
  readonly isCompared: boolean;
}

export const NOTHING = "nothing";
const MARGIN = 14;
const SIZE = 28;
const LETTER = 7.2;
/** The rest of a longer name is in the tooltip. */
const LONGEST = 34;
const LEGEND_HEIGHT = 84;
const LEAST_WIDTH = 560;
const HEADING = 22;

const STYLE = `
  .page { fill: #ffffff } text { fill: #24292f } .small { font-size: 11px; fill: #57606a } .line { stroke: #d0d7de }
  .all { fill: #b7e4bf } .some { fill: #fdeeb5 } .none { fill: #f3f4f6 } .self { fill: none; stroke: #d0d7de }
  .denied { stroke: #c62828; stroke-width: 2.5 } .allowed { stroke: #1b5e20; stroke-width: 2.5; stroke-dasharray: 4 2 }
  .sign { font-weight: bold; text-anchor: middle }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 } text { fill: #e6edf3 } .small { fill: #9198a1 } .line { stroke: #30363d }
    .all { fill: #1f5a30 } .some { fill: #5c4a08 } .none { fill: #1b2129 } .self { stroke: #30363d }
    .denied { stroke: #ff7b72 } .allowed { stroke: #66bb6a }
  }
`;

export function drawMatrix({ groups, cells, isCompared }: Matrix): string {
  const names = groups.map(({ name }) => shortened(name));
  const longest = Math.max(0, ...names.map((name) => name.length)) * LETTER;
  const [left, top] = [MARGIN + longest + 10, MARGIN + HEADING + longest + 10];
  const width = Math.max(LEAST_WIDTH, left + groups.length * SIZE + MARGIN);
  const height = top + groups.length * SIZE + LEGEND_HEIGHT;
  const indexes = new Map(groups.map((group, index) => [group, index]));
  const placed = cells.map((cell) => ({
    cell,
    x: left + (indexes.get(cell.to) ?? 0) * SIZE,
    y: top + (indexes.get(cell.from) ?? 0) * SIZE,
  }));
  const heading = "Who may reach whom: rows send to columns";
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="13">`,
    "<title>Who may reach whom</title>",
    `<style>${STYLE}</style>`,
    `<rect class="page" width="${width}" height="${height}"/>`,
    `<text x="${MARGIN}" y="${MARGIN + 12}">${heading}</text>`,
    ...names.flatMap((name, index) => {
      const middle = (index + 0.5) * SIZE + 4.5;
      const title = `<title>${escaped(groups[index]?.name ?? "")}</title>`;
      return [
        `<text x="${left - 8}" y="${top + middle}" text-anchor="end">${escaped(name)}${title}</text>`,
        `<text transform="translate(${left + middle} ${top - 8}) rotate(-90)">${escaped(name)}${title}</text>`,
      ];
    }),
    ...placed.flatMap((each) => cellShapes(each, isCompared)),
    ...legend(top + groups.length * SIZE + 16, isCompared),
    "</svg>",
    "",
  ].join("\n");
}

interface Placed {
  readonly cell: MatrixCell;
  readonly x: number;
  readonly y: number;
}

function cellShapes({ cell, x, y }: Placed, isCompared: boolean): readonly string[] {
  const { from, to, before, after } = cell;
  const change = isCompared ? changeOf(cell) : "";
  const said = isCompared && before !== after ? `before: ${before}; after: ${after}` : after;
  return [
    ...box(x, y, amountOf(after), change),
    `<text class="sign" x="${x + SIZE / 2}" y="${y + SIZE / 2 + 4.5}">${signOf(after, change)}<title>${escaped(`${from.name} to ${to.name}: ${said}`)}</title></text>`,
  ];
}

type Amount = "all" | "some" | "none";

function box(x: number, y: number, amount: Amount, change: string): readonly string[] {
  const frame = change === "" ? "" : ` ${change}`;
  return [`<rect class="${amount}${frame}" x="${x + 1.5}" y="${y + 1.5}" width="${SIZE - 3}" height="${SIZE - 3}"/>`];
}

function amountOf(text: string): Amount {
  return text === EVERYTHING ? "all" : text === NOTHING ? "none" : "some";
}

/** A change to less is framed otherwise than one to more. */
function changeOf({ before, after }: MatrixCell): "" | "denied" | "allowed" {
  if (before === after) return "";
  return before === NOTHING || after === EVERYTHING ? "allowed" : "denied";
}

const SIGNS: Readonly<Record<Amount, string>> = { all: "●", some: "◐", none: "·" };

function signOf(text: string, change: string): string {
  const sign = SIGNS[amountOf(text)];
  return change === "" ? sign : change === "denied" ? `−${sign}` : `+${sign}`;
}

function legend(y: number, isCompared: boolean): readonly string[] {
  const entries: readonly (readonly [amount: Amount, change: string, words: string])[] = [
    ["all", "", "everything"],
    ["some", "", "some packets (see tooltip)"],
    ["none", "", NOTHING],
  ];
  const changes: readonly (readonly [amount: Amount, change: string, words: string])[] = isCompared
    ? [
        ["none", "denied", "less than before"],
        ["all", "allowed", "more than before"],
      ]
    : [];
  const row = (all: typeof entries, top: number) =>
    all.flatMap(([amount, change, words], index) => {
      const x = MARGIN + index * 190;
      const sign = change === "" ? SIGNS[amount] : change === "denied" ? "−" : "+";
      return [
        ...box(x, top, amount, change),
        `<text class="sign" x="${x + SIZE / 2}" y="${top + SIZE / 2 + 4.5}">${sign}</text>`,
        `<text class="small" x="${x + SIZE + 6}" y="${top + SIZE / 2 + 4}">${words}</text>`,
      ];
    });
  return [...row(entries, y), ...row(changes, y + SIZE)];
}

function shortened(name: string): string {
  return name.length <= LONGEST ? name : `${name.slice(0, LONGEST - 1)}…`;
}

function escaped(text: string): string {
  return printable(text)
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}
