/** `flows explain ID`: why a flow was allowed or denied, by the resources as they were when it began. */
import type { FlowExplanation } from "../../flows/flow-answer.ts";
import type { FlowEnd, FlowRecord } from "../../flows/flow-record.ts";
import { quoted } from "../../quote.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, UsageError, wantsJson } from "../main/command.ts";
import type { Call, Cluster, Terminal } from "../main/context.ts";
import { hanging, type Page, stdoutPage, wrappedWhole } from "../terminal/page.ts";
import { printable, printableJson } from "../terminal/printable.ts";
import { formatRows } from "../terminal/table.ts";
import { withFlows } from "./flow-access.ts";
import { countWords, paintedVerdict, timeText } from "./flow-rows.ts";
import { decisionWords, durationWords, endInFull, groupPort, stagedWords, withPort } from "./flow-words.ts";
import { MissingNotes } from "./missing.ts";

export async function run(context: Call & Terminal & Cluster, given: Given): Promise<ExitCode> {
  const [id, ...more] = given.operands;
  if (id === undefined || id === "" || more.length > 0)
    throw new UsageError(
      `Give the ID of one flow: got ${id === undefined ? "none" : given.operands.map(quoted).join(", ")}`,
    );
  const missing = new MissingNotes(context);
  const found: FlowExplanation[] = [];
  await withFlows(context, given, async (ask) => {
    for await (const answer of ask("explanation", { id }))
      if (!missing.take(answer) && "explanation" in answer) found.push(answer.explanation);
  });
  context.signal.throwIfAborted();
  const [explanation] = found;
  if (explanation !== undefined) {
    const page = stdoutPage(context);
    context.stdout(wantsJson(given) ? `${printableJson(explanation)}\n` : explanationText(explanation, page));
    return EXIT_OK;
  }
  if (!missing.hasProblem) context.stderr(`No flow has the ID ${quoted(id)}: it may be older than the history\n`);
  return EXIT_FAILED;
}

type Line = readonly [title: string, text: string];

export function explanationText({ flow, sides = [], missing }: FlowExplanation, page: Page): string {
  const head = [
    linesOf(endLines(flow), page),
    `${"Verdict:".padEnd(TITLE_WIDTH)}${page.paint.bold(paintedVerdict(flow.verdict, page))}\n`,
    linesOf(factLines(flow), page),
  ].join("");
  const notes = missing.map((words): Line => ["Note", words]);
  return [
    head,
    ...sides.map((side) => sideText(side, page)),
    ...(notes.length === 0 ? [] : [linesOf(notes, page)]),
  ].join("\n");
}

function endLines({ source, destination, backend, seenAs }: FlowRecord): readonly Line[] {
  return [
    ["From", endInFull(source)],
    ...labelLines(source),
    ...(seenAs === undefined ? [] : [["Seen as", withPort(seenAs.address, seenAs.port)] as const]),
    ["To", endInFull(destination)],
    ...labelLines(destination),
    ...(backend === undefined ? [] : [["Leads to", endInFull(backend)] as const, ...labelLines(backend)]),
  ];
}

/** What selectors of policies were compared with. */
function labelLines({ labels = {} }: FlowEnd): readonly Line[] {
  const words = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  return words.length === 0 ? [] : [["", `labels ${words.toSorted().join(", ")}`]];
}

function factLines(flow: FlowRecord): readonly Line[] {
  const { protocol, destination, start, end, state, node, sent, received, decisions, staged, relatedTo } = flow;
  const { port } = destination;
  const lasted = state === "denied" ? "" : `, ${state} after ${durationWords(Math.max(0, end - start))}`;
  return [
    ["Protocol", groupPort({ protocol, ...(port === undefined ? {} : { port }) })],
    ["Began", `${timeText(start)}${lasted}`],
    ["Seen by", `node ${node}`],
    ["Sent", countWords(sent)],
    ...(state === "denied" ? [] : [["Received", countWords(received)] as const]),
    ...(relatedTo === undefined ? [] : [["Belongs to", relatedTo] as const]),
    ...decisions.map((decision, index): Line => [index === 0 ? "Decided" : "", decisionWords(decision)]),
    ...(staged === undefined ? [] : [["Staged", stagedWords(staged)] satisfies Line]),
  ];
}

function sideText(side: NonNullable<FlowExplanation["sides"]>[number], page: Page): string {
  const { direction, of, verdict, reason, policies } = side;
  const title = `${direction === "egress" ? "Egress" : "Ingress"} of ${of}: ${verdict}`;
  const rows = policies.map(({ title: policy, tier, outcome }, index) => [
    `${index + 1}.`,
    policy,
    `tier ${tier}`,
    outcome,
  ]);
  const policyLines = rows.length === 0 ? [] : formatRows(rows, page.width - INDENT.length - TITLE_WIDTH);
  const lines: readonly Line[] = [
    ["Because", reason],
    ...policyLines.map((line, index): Line => [index === 0 ? "Policies" : "", line]),
  ];
  return `${wrappedWhole(printable(title), page.width).join("\n")}\n${linesOf(lines, page, INDENT)}`;
}

const TITLE_WIDTH = 12;
const INDENT = "  ";

function linesOf(lines: readonly Line[], { width }: Page, indent = ""): string {
  return lines
    .flatMap(([title, text]) => {
      const head = `${indent}${(title === "" ? "" : `${title}:`).padEnd(TITLE_WIDTH)}`;
      return hanging(head, printable(text), width);
    })
    .map((line) => `${line}\n`)
    .join("");
}
