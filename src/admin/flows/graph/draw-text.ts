/** The graph as text: below each source whom it talks to. Pure. */
import { counted } from "../../../counted.ts";
import { type Page, wrappedWhole } from "../../terminal/page.ts";
import { printable } from "../../terminal/printable.ts";
import { paintedVerdict } from "../flow-rows.ts";
import { byteWords } from "../flow-words.ts";
import type { FlowGraph, GraphEdge, GraphNode } from "./flow-graph.ts";

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

/** `shop/web (Deployment)` */
function nodeWords({ namespace, title, kind }: GraphNode): string {
  const name = namespace === undefined || title.startsWith("service/") ? title : `${namespace}/${title}`;
  return kind === undefined ? name : `${name} (${kind})`;
}

function edgeLines({ to, port, verdict, flows, bytes }: GraphEdge, page: Page): string {
  const head = printable(`-> ${nodeWords(to)} ${port}`);
  const counts = `${counted(flows, "flow")}, ${byteWords(bytes)}`;
  const whole = `  ${head}: ${verdict}, ${counts}`;
  if (whole.length <= page.width) return `  ${head}: ${paintedVerdict(verdict, page)}, ${counts}\n`;
  const below = wrappedWhole(head, page.width - 2).map((line) => `  ${line}\n`);
  return `${below.join("")}     ${paintedVerdict(verdict, page)}, ${counts}\n`;
}
