/** `flows`: shows flows one by one, the oldest first, and with `--follow` those that come. */
import type { FlowRecord } from "../../flows/flow-record.ts";
import { quoted } from "../../quote.ts";
import { parseTemplate } from "../get/jsonpath/parse.ts";
import { printTemplate } from "../get/jsonpath/print.ts";
import { type Template, TemplateError } from "../get/jsonpath/template.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, UsageError } from "../main/command.ts";
import type { Call, Clock, Cluster, Terminal } from "../main/context.ts";
import { stdoutPage } from "../terminal/page.ts";
import { printable, printableJson } from "../terminal/printable.ts";
import { withFlows } from "./flow-access.ts";
import { flowRows } from "./flow-rows.ts";
import { MissingNotes } from "./missing.ts";
import { flowsAskedFor } from "./query.ts";

export async function run(context: Call & Terminal & Cluster & Clock, given: Given): Promise<ExitCode> {
  const query = flowsAskedFor(given, context.now());
  const follows = given.switches.has("follow");
  const past = Number(query["last"] ?? Number.POSITIVE_INFINITY);
  const isNews = follows && given.values.get("output") !== "json" ? newsFilter(past) : () => true;
  const missing = new MissingNotes(context);
  // The last ones come in the order in which they changed.
  const isSorted = !follows && query["last"] !== undefined;
  const printer = new FlowPrinter(context, shownAs(context, given), isSorted ? "by time" : "as they come");
  await withFlows(context, given, async (ask) => {
    for await (const answer of ask("flows", { ...query, ...(follows ? { follow: "true" } : {}) })) {
      if ("flow" in answer && isNews(answer.flow)) printer.add(answer.flow, follows ? SOON_MILLISECONDS : undefined);
      else if (missing.take(answer) && follows) missing.tellLosses();
    }
  }).finally(() => printer.flush());
  // To stop it is the usual end of what goes on.
  if (!follows) context.signal.throwIfAborted();
  missing.tellLosses();
  if (follows && !context.signal.aborted && !context.outputClosed.aborted) {
    context.stderr("Warning: who answered has ended the connection; call the command again to go on\n");
    return EXIT_FAILED;
  }
  if (printer.added === 0 && !missing.hasProblem && !follows) context.stderr("No flow was found\n");
  return missing.hasProblem ? EXIT_FAILED : EXIT_OK;
}

/** Flows that are followed and come together are printed together: then their columns have the same width. */
const SOON_MILLISECONDS = 50;
/** So many are printed at once, so that a long answer is not kept in memory. */
const MOST_TOGETHER = 500;

type ShowFlows = (records: readonly FlowRecord[]) => string;

class FlowPrinter {
  added = 0;
  private waiting: FlowRecord[] = [];

  constructor(
    private readonly context: Terminal & Clock,
    private readonly show: ShowFlows,
    private readonly order: "by time" | "as they come",
  ) {}

  /** `within`: milliseconds after which it is printed; absent: with the others. */
  add(record: FlowRecord, within: number | undefined): void {
    this.added += 1;
    this.waiting.push(record);
    if (this.order === "by time") return;
    if (this.waiting.length >= MOST_TOGETHER) this.flush();
    else if (within !== undefined && this.waiting.length === 1)
      void this.context.wait(within).then(
        () => this.flush(),
        () => {},
      );
  }

  flush(): void {
    if (this.order === "by time") this.waiting.sort((left, right) => left.start - right.start);
    if (this.waiting.length > 0) this.context.stdout(this.show(this.waiting));
    this.waiting = [];
  }
}

function shownAs(context: Call & Terminal & Clock, { values }: Given): ShowFlows {
  const format = values.get("output") ?? "table";
  if (format === "json") return (records) => records.map((record) => `${printableJson(record)}\n`).join("");
  const equals = format.indexOf("=");
  if (equals >= 0) return byTemplate(templateIn(format.slice(equals + 1)));
  const rows = flowRows(format === "wide" ? "wide" : "usual", stdoutPage(context), () => context.now());
  return (records) => rows.write(records);
}

function templateIn(text: string): Template {
  try {
    return parseTemplate(text);
  } catch (failure) {
    if (!(failure instanceof TemplateError)) throw failure;
    throw new UsageError(`${quoted(text)} is not a valid jsonpath template: ${failure.message}`);
  }
}

/** A line for each flow, unless the template ends its lines itself. */
function byTemplate(template: Template): ShowFlows {
  const line = (record: FlowRecord) => {
    const text = printTemplate(template, withoutControls(record));
    return text.endsWith("\n") ? text : `${text}\n`;
  };
  return (records) => records.map(line).join("");
}

/** The template may have line breaks and colours, what is in a record may not. */
function withoutControls(value: unknown): unknown {
  if (typeof value === "string") return printable(value);
  if (Array.isArray(value)) return value.map(withoutControls);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [printable(name), withoutControls(member)]));
}

/** So many flows are remembered while they are followed; a flow that is forgotten is shown once more. */
const MOST_REMEMBERED = 50_000;

/** The first record of a connection is younger; open ones are updated each minute. */
const UPDATED_MILLISECONDS = 10_000;

/**
 * Whether a flow is shown: when it is seen first, and when it has ended. Updates between are not, nor those of connections that
 * began before the first `past` records, which were asked for.
 */
function newsFilter(past: number): (record: FlowRecord) => boolean {
  const states = new Map<string, FlowRecord["state"]>();
  let shown = 0;
  return ({ id, state, start, end }) => {
    const former = states.get(id);
    if (former === state) return false;
    states.delete(id);
    states.set(id, state);
    const [oldest] = states.keys();
    if (states.size > MOST_REMEMBERED && oldest !== undefined) states.delete(oldest);
    const isUpdate = former === undefined && state === "open" && end - start > UPDATED_MILLISECONDS;
    if (isUpdate && shown >= past) return false;
    shown += 1;
    return true;
  };
}
