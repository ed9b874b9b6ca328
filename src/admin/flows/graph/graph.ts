/** `flows graph`: who talks to whom as text, for Graphviz, or as a picture. */
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given } from "../../main/command.ts";
import type { Call, Clock, Cluster, Terminal } from "../../main/context.ts";
import { type Page, stdoutPage } from "../../terminal/page.ts";
import { printableJson } from "../../terminal/printable.ts";
import { MissingNotes } from "../missing.ts";
import { readRollups } from "../top.ts";
import { drawDot } from "./draw-dot.ts";
import { drawSvg } from "./draw-svg.ts";
import { drawText } from "./draw-text.ts";
import { type FlowGraph, flowGraph } from "./flow-graph.ts";

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
