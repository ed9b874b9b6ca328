/** `flows top`: sums by pair, source, destination, port or rule. */
import { counted } from "../../counted.ts";
import type { FlowRollup } from "../../flows/flow-answer.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, wantsJson } from "../main/command.ts";
import type { Call, Clock, Cluster, Terminal } from "../main/context.ts";
import { stdoutPage } from "../terminal/page.ts";
import { printableJson } from "../terminal/printable.ts";
import { TableWriter } from "../terminal/table.ts";
import { withFlows } from "./flow-access.ts";
import { paintedVerdict } from "./flow-rows.ts";
import { byteWords } from "./flow-words.ts";
import { MissingNotes } from "./missing.ts";
import { DEFAULT_COUNT } from "./options.ts";
import { countOf, sumsAskedFor } from "./query.ts";
import { GROUPINGS, type TopRow, topRows } from "./sums.ts";

export async function run(context: Call & Terminal & Cluster & Clock, given: Given): Promise<ExitCode> {
  const by = GROUPINGS.find((name) => name === given.values.get("by")) ?? "pair";
  const sort = (["flows", "packets", "bytes"] as const).find((name) => name === given.values.get("sort")) ?? "flows";
  const most = countOf(given) ?? DEFAULT_COUNT;
  const missing = new MissingNotes(context);
  const rows = topRows(await readRollups(context, given, missing), by).toSorted(
    (left, right) => right[sort] - left[sort] || compareTexts(titleOf(left), titleOf(right)),
  );
  const shown = most === 0 ? rows : rows.slice(0, most);
  if (wantsJson(given)) context.stdout(shown.map((row) => `${printableJson(jsonOf(row))}\n`).join(""));
  else if (shown.length > 0) context.stdout(tableOf(shown, context));
  missing.tellLosses();
  if (rows.length === 0 && !missing.hasProblem) context.stderr("No flow was found\n");
  const left = rows.length - shown.length;
  if (left > 0)
    context.stderr(`Note: ${counted(left, "more row")}; show all with --last 0
`);
  return missing.hasProblem ? EXIT_FAILED : EXIT_OK;
}

/** All sums of the nodes for the time and the filters of the call. */
export async function readRollups(
  context: Call & Terminal & Cluster & Clock,
  given: Given,
  missing: MissingNotes,
): Promise<readonly FlowRollup[]> {
  const rollups: FlowRollup[] = [];
  const parameters = sumsAskedFor(given, context.now());
  await withFlows(context, given, async (ask) => {
    for await (const answer of ask("rollups", parameters))
      if (!missing.take(answer) && "rollup" in answer) rollups.push(answer.rollup);
  });
  context.signal.throwIfAborted();
  return rollups;
}

function tableOf(rows: readonly TopRow[], context: Call & Terminal): string {
  const titles = Object.keys(rows[0]?.cells ?? {}).filter((title) => title !== "VERDICT");
  const page = stdoutPage(context);
  return new TableWriter(["FLOWS", "VERDICT", ...titles, "BYTES", "PACKETS"], {
    page,
    leaveOutFirst: ["PACKETS", "BYTES", "POINT"],
    paintCell: (title, text) => (title === "VERDICT" ? paintedVerdict(text, page) : text),
  }).write(
    rows.map(({ cells, flows, packets, bytes }) => [
      String(flows),
      cells["VERDICT"] ?? "",
      ...titles.map((title) => cells[title] ?? ""),
      byteWords(bytes),
      String(packets),
    ]),
  );
}

function jsonOf({ cells, ...sum }: TopRow): object {
  return { ...Object.fromEntries(Object.entries(cells).map(([title, text]) => [title.toLowerCase(), text])), ...sum };
}

function titleOf({ cells }: TopRow): string {
  return Object.values(cells).join(" ");
}

function compareTexts(left: string, right: string): number {
  return left < right ? -1 : left === right ? 0 : 1;
}
