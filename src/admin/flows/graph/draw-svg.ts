/**
 * The graph as a picture, as wide as a page: sources on the left, each with a row for what it does with whom, and destinations on
 * the right. A label is in the row where its line begins, so that no line and no other label hides it. Verdicts differ by colour
 * and by the kind of line, on light and dark backgrounds. Text is escaped, and the picture has neither scripts nor links. Pure.
 */
import { printable } from "../../terminal/printable.ts";
import { type FlowGraph, type GraphEdge, type GraphNode, nodeWords, type Verdict } from "./flow-graph.ts";

const MARGIN = 12;
const SOURCE_WIDTH = 330;
const DESTINATION = { width: 220, height: 40 } as const;
/** Between both columns, for the lines. */
const ROOM = 270;
const WIDTH = 2 * MARGIN + SOURCE_WIDTH + ROOM + DESTINATION.width;
const HEAD_HEIGHT = 38;
const ROW_HEIGHT = 17;
const GAP = 12;
const LEGEND_HEIGHT = 26;
/** The rest of a longer name is in the tooltip. */
const LONGEST = { title: 30, below: 34, row: 23 } as const;
/** Of what one node does with another one; what was denied comes first. */
const MOST_ROWS = 3;
const VERDICTS = ["allowed", "denied", "unknown"] as const satisfies readonly Verdict[];

const STYLE = `
  .page { fill: #ffffff } text { fill: #24292f } .small { font-size: 11px; fill: #57606a } .box { stroke: #8c959f }
  path { fill: none; stroke-width: 1.4 } .denied { stroke-width: 2; stroke-dasharray: 7 4 } .unknown { stroke-dasharray: 2 3 }
  path.allowed { stroke: #2e7d32 } path.denied { stroke: #c62828 } path.unknown { stroke: #8a5a00 }
  .head { stroke: none } .head.allowed, text.allowed { fill: #2e7d32 } .head.denied, text.denied { fill: #c62828 }
  .head.unknown, text.unknown { fill: #8a5a00 } text.denied { font-weight: bold }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 } text { fill: #e6edf3 } .small { fill: #9198a1 } .box { stroke: #6e7681 }
    path.allowed { stroke: #66bb6a } path.denied { stroke: #ff7b72 } path.unknown { stroke: #e3b341 }
    .head.allowed, text.allowed { fill: #66bb6a } .head.denied, text.denied { fill: #ff7b72 }
    .head.unknown, text.unknown { fill: #e3b341 }
  }
`;

export interface Row {
  /** `undefined`: a row that counts those that are not shown. */
  readonly edge?: GraphEdge;
  readonly more: number;
  /** Of the middle. */
  readonly y: number;
}

export interface Box {
  readonly node: GraphNode;
  readonly y: number;
  readonly height: number;
  /** Of a source. */
  readonly rows: readonly Row[];
}

export interface Layout {
  readonly sources: readonly Box[];
  readonly destinations: readonly Box[];
  readonly height: number;
}

export function drawSvg(graph: FlowGraph): string {
  const { sources, destinations, height } = layoutOf(graph);
  const lines = sources.flatMap(({ rows }) => rows);
  const whole = height + LEGEND_HEIGHT;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${whole}" viewBox="0 0 ${WIDTH} ${whole}" font-family="sans-serif" font-size="13">`,
    "<title>Who talks to whom</title>",
    `<style>${STYLE}</style>`,
    `<rect class="page" width="${WIDTH}" height="${whole}"/>`,
    "<defs>",
    ...VERDICTS.map(arrowHead),
    "</defs>",
    ...destinations.flatMap((box) => linesTo(box, lines)),
    ...sources.flatMap((box) => [...boxShapes(box, MARGIN, SOURCE_WIDTH), ...box.rows.flatMap(rowShapes)]),
    ...destinations.flatMap((box) => boxShapes(box, WIDTH - MARGIN - DESTINATION.width, DESTINATION.width)),
    ...legend(whole - LEGEND_HEIGHT / 2),
    "</svg>",
    "",
  ].join("\n");
}

/** Sources in the order of the nodes; destinations beside those that talk to them. */
export function layoutOf({ nodes, edges }: FlowGraph): Layout {
  const bySource = Map.groupBy(edges, ({ from }) => from);
  const sources: Box[] = [];
  let below = MARGIN;
  for (const node of nodes) {
    const own = bySource.get(node);
    if (own === undefined) continue;
    const rows = rowsOf(own).map((row, index) => ({ ...row, y: below + HEAD_HEIGHT + (index + 0.5) * ROW_HEIGHT }));
    const height = HEAD_HEIGHT + rows.length * ROW_HEIGHT + 6;
    sources.push({ node, y: below, height, rows });
    below += height + GAP;
  }
  const destinations = placeDestinations(sources, below);
  const last = destinations.at(-1);
  return { sources, destinations, height: Math.max(below, (last?.y ?? 0) + DESTINATION.height + GAP) };
}

function rowsOf(edges: readonly GraphEdge[]): readonly Omit<Row, "y">[] {
  return [...Map.groupBy(edges, ({ to }) => to).values()].flatMap((own) => {
    const inOrder = own.toSorted(
      (left, right) => Number(right.verdict === "denied") - Number(left.verdict === "denied"),
    );
    const shown = inOrder.slice(0, inOrder.length > MOST_ROWS ? MOST_ROWS - 1 : MOST_ROWS);
    const more = own.length - shown.length;
    return [...shown.map((edge) => ({ edge, more: 0 })), ...(more > 0 ? [{ more }] : [])];
  });
}

/** In the order of the middles of those that talk to them, over the whole height. */
function placeDestinations(sources: readonly Box[], height: number): readonly Box[] {
  const lines = sources.flatMap(({ rows }) =>
    rows.flatMap(({ edge, y }) => (edge === undefined ? [] : { to: edge.to, y })),
  );
  const incoming = Array.from(
    Map.groupBy(lines, ({ to }) => to),
    ([node, own]) => ({
      node,
      middle: own.reduce((sum, { y }) => sum + y, 0) / own.length,
    }),
  );
  const step = Math.max(DESTINATION.height + GAP, (height - MARGIN) / Math.max(1, incoming.length));
  return incoming
    .toSorted((left, right) => left.middle - right.middle || left.node.index - right.node.index)
    .map(({ node }, index) => {
      const y = Math.round(MARGIN + index * step + (step - GAP - DESTINATION.height) / 2);
      return { node, y, height: DESTINATION.height, rows: [] };
    });
}

function arrowHead(verdict: Verdict): string {
  const shape = `<path class="head ${verdict}" d="M0,0 L9,4.5 L0,9 z"/>`;
  return `<marker id="${verdict}" viewBox="0 0 9 9" refX="9" refY="4.5" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto">${shape}</marker>`;
}

/** Each ends at a place of its own, so that no arrow hides another one. */
function linesTo({ node, y, height }: Box, rows: readonly Row[]): readonly string[] {
  const own = rows.filter(({ edge }) => edge?.to === node);
  const [start, end] = [MARGIN + SOURCE_WIDTH, MARGIN + SOURCE_WIDTH + ROOM];
  return own.flatMap(({ edge, y: from }, index) => {
    if (edge === undefined) return [];
    const to = Math.round(y + (height * (index + 1)) / (own.length + 1));
    const curve = `M${start},${from} C${start + ROOM / 2},${from} ${end - ROOM / 2},${to} ${end - 1},${to}`;
    const words = `${nodeWords(edge.from)} -> ${nodeWords(edge.to)} ${edge.port} ${edge.flows} ${edge.verdict}`;
    return [
      `<path class="${edge.verdict}" d="${curve}" marker-end="url(#${edge.verdict})"><title>${escaped(words)}</title></path>`,
    ];
  });
}

function boxShapes({ node, y, height }: Box, x: number, width: number): readonly string[] {
  const { namespace, title, kind } = node;
  const below = [namespace, kind].filter((text) => text !== undefined).join(", ");
  return [
    `<g><title>${escaped(nodeWords(node))}</title>`,
    `<rect class="box" x="${x}" y="${y}" width="${width}" height="${height}" rx="5" fill="${fillOf(namespace)}" fill-opacity="0.14"/>`,
    `<text x="${x + 10}" y="${y + (below === "" ? 24 : 17)}" font-weight="bold">${shortened(title, LONGEST.title)}</text>`,
    ...(below === ""
      ? []
      : [`<text class="small" x="${x + 10}" y="${y + 32}">${shortened(below, LONGEST.below)}</text>`]),
    "</g>",
  ];
}

function rowShapes({ edge, more, y }: Row): readonly string[] {
  const [left, right] = [MARGIN + 10, MARGIN + SOURCE_WIDTH - 10];
  const baseline = y + 4;
  if (edge === undefined) return [`<text class="small" x="${left}" y="${baseline}">and ${more} more ports</text>`];
  const { to, port, flows, verdict } = edge;
  const words = verdict === "allowed" ? `${port}  ${flows}` : `${port}  ${flows} ${verdict}`;
  return [
    `<text class="small" x="${left}" y="${baseline}">${shortened(to.title, LONGEST.row)}</text>`,
    `<text class="small ${verdict}" x="${right}" y="${baseline}" text-anchor="end">${escaped(words)}</text>`,
  ];
}

function legend(y: number): readonly string[] {
  return VERDICTS.flatMap((verdict, index) => {
    const x = MARGIN + index * 120;
    return [
      `<path class="${verdict}" d="M${x},${y} L${x + 40},${y}" marker-end="url(#${verdict})"/>`,
      `<text class="small" x="${x + 48}" y="${y + 4}">${verdict}</text>`,
    ];
  });
}

/** The nodes of a namespace have the same colour, in each picture. */
function fillOf(namespace: string | undefined): string {
  if (namespace === undefined) return "#808080";
  let hash = 0;
  for (const character of namespace) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) % 360;
  return `hsl(${hash}, 70%, 50%)`;
}

function shortened(text: string, longest: number): string {
  const whole = printable(text);
  return escaped(whole.length <= longest ? whole : `${whole.slice(0, longest - 1)}…`);
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Also without what XML does not allow at all: control characters, halves of characters, and two that are none. */
function escaped(text: string): string {
  return printable(text)
    .toWellFormed()
    .replace(/[\ufffe\uffff]/g, "\ufffd")
    .replace(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
}
