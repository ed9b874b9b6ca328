/** `flows graph`: who talks to whom as text, for Graphviz, or as a picture. */
import { counted } from "../../../counted.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given } from "../../main/command.ts";
import type { Call, Clock, Cluster, Terminal } from "../../main/context.ts";
import { type Page, stdoutPage, wrappedWhole } from "../../terminal/page.ts";
import { printable, printableJson } from "../../terminal/printable.ts";
import { paintedVerdict } from "../flow-rows.ts";
import { byteWords } from "../flow-words.ts";
import { MissingNotes } from "../missing.ts";
import { readRollups } from "../top.ts";
import { drawSvg } from "./draw-svg.ts";
import { type FlowGraph, flowGraph, type GraphEdge, type GraphNode, nodeWords } from "./flow-graph.ts";

export async function run(context: Call & Terminal & Cluster & Clock, given: Given): Promise<ExitCode> {
  const missing = new MissingNotes(context);
  const graph = flowGraph(await readRollups(context, given, missing));
  context.stdout(drawn(graph, given.values.get("output"), stdoutPage(context)));
  missing.tellLosses();
  if (graph.nodes.length === 0 && !missing.hasProblem) context.stderr("No flow was found\n");
  return missing.hasProblem ? EXIT_FAILED : EXIT_OK;
}

function drawn(graph: FlowGraph, format: string | undefined, page: Page): string {
  switch (format) {
    case "dot":
      return drawDot(graph);
    case "svg":
      return drawSvg(graph);
    case "json":
      return `${printableJson(jsonOf(graph))}\n`;
    default:
      return drawText(graph, page);
  }
}

/** Edges name nodes by their place in the list. */
function jsonOf({ nodes, edges }: FlowGraph): object {
  return {
    nodes: nodes.map(({ index: _, ...node }) => node),
    edges: edges.map(({ from, to, ...edge }) => ({ from: from.index, to: to.index, ...edge })),
  };
}

/** Below each source whom it talks to. */
export function drawText({ nodes, edges }: FlowGraph, page: Page): string {
  const blocks = nodes.flatMap((node) => {
    const own = edges.filter(({ from }) => from === node);
    return own.length === 0 ? [] : [`${titleLines(node, page)}${own.map((edge) => edgeLines(edge, page)).join("")}`];
  });
  return blocks.join("\n");
}

function titleLines(node: GraphNode, { paint, width }: Page): string {
  return wrappedWhole(printable(nodeWords(node)), width)
    .map((line) => `${paint.bold(line)}\n`)
    .join("");
}

function edgeLines({ to, port, verdict, flows, bytes }: GraphEdge, page: Page): string {
  const head = printable(`-> ${nodeWords(to)} ${port}`);
  const counts = `${counted(flows, "flow")}, ${byteWords(bytes)}`;
  const whole = `  ${head}: ${verdict}, ${counts}`;
  if (whole.length <= page.width) return `  ${head}: ${paintedVerdict(verdict, page)}, ${counts}\n`;
  const below = wrappedWhole(head, page.width - 2).map((line) => `  ${line}\n`);
  return `${below.join("")}     ${paintedVerdict(verdict, page)}, ${counts}\n`;
}

const COLOURS = { allowed: "#2e7d32", denied: "#c62828", unknown: "#f9a825" } as const;

/** For Graphviz. Names are in quoted strings, in which nothing but text is possible. */
export function drawDot({ nodes, edges }: FlowGraph): string {
  const namespaces = Map.groupBy(nodes, ({ namespace }) => namespace);
  const groups = Array.from(namespaces, ([namespace, own], index) => {
    const lines = own.map((node) => `${nodeName(node)} [label=${quotedText(labelOf(node))}];`);
    if (namespace === undefined) return lines.map((line) => `  ${line}`);
    const title = `    label=${quotedText(namespace)};`;
    return [`  subgraph cluster_${index} {`, title, ...lines.map((line) => `    ${line}`), "  }"];
  });
  const arrows = edges.map((edge) => {
    const { from, to, verdict } = edge;
    const style = verdict === "denied" ? " style=dashed" : "";
    const colour = `color="${COLOURS[verdict]}" fontcolor="${COLOURS[verdict]}"${style}`;
    return `  ${nodeName(from)} -> ${nodeName(to)} [label=${quotedText(`${edge.port} ${edge.flows} ${verdict}`)} ${colour}];`;
  });
  return ["digraph flows {", "  rankdir=LR;", "  node [shape=box];", ...groups.flat(), ...arrows, "}", ""].join("\n");
}

function nodeName({ index }: GraphNode): string {
  return `n${index}`;
}

function labelOf({ title, kind }: GraphNode): string {
  return kind === undefined ? title : `${title} (${kind})`;
}

/** A backslash would begin an escape sequence of Graphviz, such as `\N`, the name of the node. */
function quotedText(text: string): string {
  return `"${printable(text).replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
}
