/** What a map of blocks shows: how full they are, or which node has them. Pure. */
import { counted } from "../../../counted.ts";
import type { Paint } from "../../terminal/paint.ts";
import { printable } from "../../terminal/printable.ts";
import { type MapStyle, type Mark, UNREADABLE } from "./draw-map.ts";
import type { Cell, PoolMap } from "./pool-map.ts";

const LEVELS = ["▂", "▃", "▄", "▅", "▆", "▇"] as const;
const EMPTY: Mark = { text: "▁", colour: "green" };
const FULL: Mark = { text: "█", colour: "red" };
/** From this level on a cell is nearly full. */
const NEARLY_FULL = 4;

export const USAGE_STYLE: MapStyle = {
  mark({ used }, size) {
    if (used === 0) return EMPTY;
    if (BigInt(used) >= size) return FULL;
    const level = Number((BigInt(used) * BigInt(LEVELS.length)) / size);
    return { text: LEVELS[level] ?? FULL.text, colour: level < NEARLY_FULL ? "green" : "yellow" };
  },
  legend: [
    [EMPTY, "no address in use"],
    [{ text: LEVELS.join("") }, "in use in part"],
    [FULL, "all in use"],
    [UNREADABLE, "unreadable"],
  ],
};

const LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const COLOURS: readonly (keyof Paint)[] = ["green", "yellow", "cyan", "magenta", "blue", "red"];
const NO_NODE: Mark = { text: "-", colour: "yellow" };
const SEVERAL: Mark = { text: "+" };
const OTHER: Mark = { text: "*" };

/** The nodes with the most blocks get the letters; `maps` are drawn with the same ones. */
export function nodeStyle(maps: readonly PoolMap[]): MapStyle {
  const counts = new Map<string, number>();
  for (const { nodes, blocks } of maps.flatMap(({ cells }) => [...cells.values()])) {
    const [only] = nodes;
    for (const node of nodes) {
      if (node !== undefined) counts.set(node, (counts.get(node) ?? 0) + (only === node ? blocks : 1));
    }
  }
  const ranked = [...counts].toSorted(([left, most], [right, least]) => least - most || (left < right ? -1 : 1));
  const marks = new Map(
    ranked.slice(0, LETTERS.length).map(([node], index): [string, Mark] => {
      const colour = COLOURS[index % COLOURS.length];
      return [node, { text: LETTERS[index] ?? OTHER.text, ...(colour === undefined ? {} : { colour }) }];
    }),
  );
  const others = ranked.length - marks.size;
  return {
    mark: (cell) => nodeMark(cell, marks),
    legend: [
      ...[...marks].map(([node, mark]) => [mark, printable(node)] as const),
      ...(others > 0 ? [[OTHER, counted(others, "other node")] as const] : []),
      [SEVERAL, "several nodes"],
      [NO_NODE, "no node"],
      [UNREADABLE, "unreadable"],
    ],
  };
}

function nodeMark({ nodes }: Cell, marks: ReadonlyMap<string, Mark>): Mark {
  const [node] = nodes;
  if (nodes.size > 1) return SEVERAL;
  return node === undefined ? NO_NODE : (marks.get(node) ?? OTHER);
}
