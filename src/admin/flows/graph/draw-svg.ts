/**
 * The graph as a picture: nodes in columns, so that most edges lead to the right, and inside a column by namespace. Text is
 * escaped, and the picture has neither scripts nor links. Pure.
 */
import { printable } from "../../terminal/printable.ts";
import { edgeWords, type FlowGraph, type GraphEdge, type GraphNode } from "./flow-graph.ts";

const NODE = { width: 180, height: 40 } as const;
const GAP = { x: 200, y: 26 } as const;
/** What leads back has room beside the first and the last column. */
const MARGIN = { x: 70, y: 20 } as const;
const REACH_BACK = 80;
const LABEL_HEIGHT = 13;
/** The rest of a longer name is in the tooltip. */
const LONGEST_TITLE = 26;
const COLOURS = { allowed: "#2e7d32", denied: "#c62828", unknown: "#b26a00" } as const;

interface Place {
  readonly x: number;
  readonly y: number;
}

export function drawSvg(graph: FlowGraph): string {
  const columns = columnsOf(graph);
  const places = placesIn(columns);
  const rows = Math.max(1, ...columns.map(({ length }) => length)) * (NODE.height + GAP.y);
  const leadsBack = graph.edges.some(({ from, to }) => (places.get(to)?.x ?? 0) <= (places.get(from)?.x ?? 0));
  const height = 2 * MARGIN.y + rows + (leadsBack ? rows / 2 + NODE.height : 0);
  const width = 2 * MARGIN.x + Math.max(1, columns.length) * (NODE.width + GAP.x) - GAP.x;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">`,
    "<title>Who talks to whom</title>",
    `<rect width="${width}" height="${height}" fill="#fff"/>`,
    "<defs>",
    ...Object.entries(COLOURS).map(([verdict, colour]) => arrowHead(verdict, colour)),
    "</defs>",
    ...edgeGroups(graph.edges).flatMap((edges) => edgeShapes(edges, places)),
    ...graph.nodes.flatMap((node) => nodeShapes(node, places.get(node))),
    "</svg>",
    "",
  ].join("\n");
}

/**
 * A node is in a column to the right of those that talk to it; what would lead back, in a circle, does not count. Nodes come
 * in their order, so that the same graph is always drawn in the same way.
 */
export function columnsOf(graph: FlowGraph): readonly (readonly GraphNode[])[] {
  const { order, forward } = leadingForward(graph);
  const column = new Map<GraphNode, number>();
  for (const node of order) {
    const own = column.get(node) ?? 0;
    column.set(node, own);
    for (const { to } of forward.get(node) ?? []) column.set(to, Math.max(column.get(to) ?? 0, own + 1));
  }
  const count = Math.max(-1, ...column.values()) + 1;
  return Array.from({ length: count }, (_, index) => graph.nodes.filter((node) => column.get(node) === index));
}

/** Nodes in an order in which each comes before those that it leads to, and the edges that do not close a circle. */
function leadingForward({ nodes, edges }: FlowGraph) {
  const targets = Map.groupBy(edges, ({ from }) => from);
  const forward = new Map<GraphNode, GraphEdge[]>();
  const finished: GraphNode[] = [];
  const seen = new Set<GraphNode>();
  const open = new Set<GraphNode>();
  // Without recursion: a chain may be as long as the graph.
  const path: { readonly node: GraphNode; next: number }[] = [];
  const enter = (node: GraphNode) => {
    seen.add(node);
    open.add(node);
    path.push({ node, next: 0 });
  };
  for (const root of rootsFirst({ nodes, edges })) {
    if (!seen.has(root)) enter(root);
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const edge = targets.get(top.node)?.[top.next];
      top.next += 1;
      if (edge === undefined) {
        open.delete(top.node);
        finished.push(top.node);
        path.pop();
        continue;
      }
      if (open.has(edge.to)) continue;
      forward.set(top.node, [...(forward.get(top.node) ?? []), edge]);
      if (!seen.has(edge.to)) enter(edge.to);
    }
  }
  return { order: finished.toReversed(), forward };
}

/** Those that talk more than they are talked to. */
function rootsFirst({ nodes, edges }: FlowGraph): readonly GraphNode[] {
  const balance = new Map<GraphNode, number>();
  for (const { from, to } of edges) {
    balance.set(from, (balance.get(from) ?? 0) - 1);
    balance.set(to, (balance.get(to) ?? 0) + 1);
  }
  // Of equal ones the outside, which is at the end of the nodes, begins.
  return nodes.toReversed().toSorted((left, right) => (balance.get(left) ?? 0) - (balance.get(right) ?? 0));
}

function placesIn(columns: readonly (readonly GraphNode[])[]): ReadonlyMap<GraphNode, Place> {
  return new Map(
    columns.flatMap((column, x) =>
      column.map((node, y) => [
        node,
        { x: MARGIN.x + x * (NODE.width + GAP.x), y: MARGIN.y + y * (NODE.height + GAP.y) + GAP.y / 2 },
      ]),
    ),
  );
}

function arrowHead(verdict: string, colour: string): string {
  const shape = `<path d="M0,0 L8,4 L0,8 z" fill="${colour}"/>`;
  return `<marker id="${verdict}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">${shape}</marker>`;
}

/** One line for all that goes from one node to another one, with a label for each port and verdict. */
function edgeGroups(edges: readonly GraphEdge[]): readonly (readonly GraphEdge[])[] {
  return [...Map.groupBy(edges, ({ from, to }) => `${from.index} ${to.index}`).values()];
}

const MOST_LABELS = 3;

function edgeShapes(edges: readonly GraphEdge[], places: ReadonlyMap<GraphNode, Place>): readonly string[] {
  const [first] = edges;
  const [from, to] = [first && places.get(first.from), first && places.get(first.to)];
  if (first === undefined || from === undefined || to === undefined) return [];
  const worst = edges.find(({ verdict }) => verdict === "denied") ?? first;
  const start = { x: from.x + NODE.width, y: from.y + NODE.height / 2 };
  const end = { x: to.x, y: to.y + NODE.height / 2 };
  const reach = end.x > start.x ? (end.x - start.x) / 2 : REACH_BACK;
  // What leads back passes below the nodes.
  const sag = end.x > start.x ? 0 : NODE.height + Math.abs(end.y - start.y) / 2;
  const curve = `M${start.x},${start.y} C${start.x + reach},${start.y + sag} ${end.x - reach},${end.y + sag} ${end.x},${end.y}`;
  const middle = { x: (start.x + end.x) / 2, y: (start.y + end.y) / 2 + sag * 0.75 };
  const labels = edges.slice(0, MOST_LABELS).map((edge) => ({ text: edgeWords(edge), colour: COLOURS[edge.verdict] }));
  const more = edges.length > MOST_LABELS ? [{ text: `and ${edges.length - MOST_LABELS} more`, colour: "#555" }] : [];
  const colour = COLOURS[worst.verdict];
  return [
    `<path d="${curve}" fill="none" stroke="${colour}" marker-end="url(#${worst.verdict})"><title>${escaped(edges.map(edgeWords).join(", "))}</title></path>`,
    ...[...labels, ...more].map(({ text, colour: fill }, index) => {
      const y = middle.y - 4 + index * LABEL_HEIGHT;
      return `<text x="${middle.x}" y="${y}" text-anchor="middle" fill="${fill}" font-size="11" paint-order="stroke" stroke="#fff" stroke-width="3">${escaped(text)}</text>`;
    }),
  ];
}

function nodeShapes(node: GraphNode, place: Place | undefined): readonly string[] {
  if (place === undefined) return [];
  const { x, y } = place;
  const { namespace, title, kind } = node;
  const below = [namespace, kind].filter((text) => text !== undefined).join(", ");
  const middle = x + NODE.width / 2;
  return [
    `<g><title>${escaped([title, below].filter((text) => text !== "").join(", "))}</title>`,
    `<rect x="${x}" y="${y}" width="${NODE.width}" height="${NODE.height}" rx="4" fill="${fillOf(namespace)}" stroke="#666"/>`,
    `<text x="${middle}" y="${y + (below === "" ? 24 : 17)}" text-anchor="middle">${escaped(shortened(title))}</text>`,
    ...(below === ""
      ? []
      : [
          `<text x="${middle}" y="${y + 32}" text-anchor="middle" font-size="10" fill="#555">${escaped(shortened(below))}</text>`,
        ]),
    "</g>",
  ];
}

/** The nodes of a namespace have the same colour, in each picture. */
function fillOf(namespace: string | undefined): string {
  if (namespace === undefined) return "#f2f2f2";
  let hash = 0;
  for (const character of namespace) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) % 360;
  return `hsl(${hash}, 60%, 92%)`;
}

function shortened(text: string): string {
  const whole = printable(text);
  return whole.length <= LONGEST_TITLE ? whole : `${whole.slice(0, LONGEST_TITLE - 1)}…`;
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
