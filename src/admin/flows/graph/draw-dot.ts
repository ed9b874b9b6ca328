/** The graph for Graphviz. Names are in quoted strings, in which nothing but text is possible. Pure. */
import { printable } from "../../terminal/printable.ts";
import { edgeWords, type FlowGraph, type GraphNode } from "./flow-graph.ts";

const COLOURS = { allowed: "#2e7d32", denied: "#c62828", unknown: "#f9a825" } as const;

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
    const colour = `color="${COLOURS[verdict]}" fontcolor="${COLOURS[verdict]}"`;
    return `  ${nodeName(from)} -> ${nodeName(to)} [label=${quotedText(edgeWords(edge))} ${colour}];`;
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
