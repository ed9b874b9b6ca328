/** `policy matrix`: who may reach whom, as it is stored, or before and after a change. */

import type { PairReach, ReachCell } from "../../../policy/what-if/reach.ts";
import type { Group } from "../../../policy/what-if/reach-groups.ts";
import { type Grouping, groupsOf } from "../../../policy/what-if/reach-groups.ts";
import {
  EVERYTHING,
  groupsText,
  isOfNamespace,
  packetsText,
  type ReachRow,
  reachRows,
} from "../../../policy/what-if/reach-rows.ts";
import { quoted } from "../../../quote.ts";
import { withDatastore } from "../../datastore/open.ts";
import { reportUnreadable } from "../../ipam/report-unreadable.ts";
import { EXIT_OK, type ExitCode, type Given } from "../../main/command.ts";
import type { Call, Clock, DatastoreAccess, Host, Terminal } from "../../main/context.ts";
import { namespaceOf } from "../../resources/reference.ts";
import { stdoutPage } from "../../terminal/page.ts";
import { printable } from "../../terminal/printable.ts";
import { formatTable } from "../../terminal/table.ts";
import { drawMatrix, type Matrix, NOTHING } from "./draw-matrix.ts";
import { changeWords, hasPlannedChange, readPlannedChange } from "./planned-change.ts";
import { type ComparedPolicy, readReach } from "./read-reach.ts";

/** More groups than these are summed up by namespace, unless the user asks for them. */
const MOST_GROUPS = 60;

export async function run(context: DatastoreAccess & Host & Clock, given: Given): Promise<ExitCode> {
  const plannedIn = await readPlannedChange(context, given);
  return withDatastore(context, given, async (stored) => {
    const planned = await plannedIn(stored);
    const compared = await readReach(context, { stored, planned: planned.store });
    const isCompared = hasPlannedChange(given);
    const grouping = groupingOf(compared, given);
    if (grouping.isSummed)
      context.stderr(`Note: more than ${MOST_GROUPS} groups, so by namespace; --by group shows all\n`);
    const shown = { ...compared, by: grouping.by, isCompared, namespace: namespaceOf(given) };
    if (!hasEnds(shown))
      context.stderr(`Note: namespace ${quoted(shown.namespace ?? "")} has no workload, so no pair is about it\n`);
    const format = given.values.get("output") ?? "text";
    if (isCompared && format === "text") context.stdout(`As if:  ${printable(changeWords(planned.changes))}\n\n`);
    context.stdout(
      format === "text" ? tableOf(shown, context) : FORMATS[format as keyof typeof FORMATS](matrixOf(shown)),
    );
    return reportUnreadable(context, compared.after.unreadable) || EXIT_OK;
  });
}

const FORMATS = { json: jsonOf, csv: csvOf, svg: drawMatrix };

interface Shown extends ComparedPolicy {
  readonly by: Grouping;
  readonly isCompared: boolean;
  /** Only pairs with an end in it. */
  readonly namespace: string | undefined;
}

function groupingOf({ reach, after }: ComparedPolicy, { values }: Given): { by: Grouping; isSummed: boolean } {
  const asked = values.get("by");
  if (asked !== undefined) return { by: asked === "namespace" ? "namespace" : "group", isSummed: false };
  const groups = new Set([...groupsOf(reach.classes, "group", after.resources).values()].flat());
  return groups.size > MOST_GROUPS ? { by: "namespace", isSummed: true } : { by: "group", isSummed: false };
}

/** Whether the namespace that was asked for has a workload. */
function hasEnds({ reach, namespace }: Shown): boolean {
  if (namespace === undefined) return true;
  return reach.classes.some(({ ends }) =>
    ends.some(({ after, before }) => (after ?? before)?.metadata.namespace === namespace),
  );
}

type Groups = ReturnType<typeof groupsOf>;

function* pairsOf({ reach, namespace }: Shown, groups: Groups): Iterable<PairReach> {
  const isAsked = (each: PairReach["source"]) => groups.get(each)?.some((group) => group.namespace === namespace);
  for (const [source, destination] of reach.pairs()) {
    if (namespace === undefined || isAsked(source) || isAsked(destination)) yield reach.between(source, destination);
  }
}

function tableOf(shown: Shown, context: Call & Terminal): string {
  const header = [...(shown.isCompared ? ["CHANGE"] : []), "FROM", "TO", "MAY SEND"];
  const page = stdoutPage(context);
  if (shown.by === "namespace") return formatTable(header, summedRows(matrixOf(shown)), page);
  const groups = groupsOf(shown.reach.classes, shown.by, shown.after.resources);
  const all = [...new Set([...groups.values()].flat())];
  const pairs = [...pairsOf(shown, groups)];
  const rowsFor = (chosen: (cell: ReachCell) => boolean, mark: string) =>
    reachRows(pairs, { groups, namespace: shown.namespace }, chosen).map((row) => [
      ...(shown.isCompared ? [mark] : []),
      ...cellsOf(row, all),
    ]);
  const rows = [
    ...rowsFor(({ before, after }) => before === "allowed" && after === "denied", "- denied"),
    ...rowsFor(({ before, after }) => before === "denied" && after === "allowed", "+ allowed"),
    ...rowsFor(({ before, after }) => before === "allowed" && after === "allowed", ""),
  ];
  if (rows.length === 0) return hasEnds(shown) ? "Nobody may reach anybody\n" : "";
  return formatTable(header, rows, page, { wrapped: ["FROM", "TO"] });
}

/** Of each pair, those that changed first. */
function summedRows({ cells, isCompared }: Matrix): readonly (readonly string[])[] {
  return cells
    .filter(({ before, after }) => before !== NOTHING || after !== NOTHING)
    .toSorted((left, right) => Number(left.before === left.after) - Number(right.before === right.after))
    .map(({ from, to, before, after }) => {
      const text = before === after ? after : `${after} (before: ${before})`;
      return [...(isCompared ? [before === after ? "" : "changed"] : []), from.name, to.name, text];
    });
}

function cellsOf({ sources, destinations, packets, family }: ReachRow, all: readonly Group[]): readonly string[] {
  const text = family === undefined ? packets : `IPv${family} ${packets}`;
  return [groupsText(sources, all), groupsText(destinations, all), text];
}

/** A cell for each pair of groups. */
function matrixOf(shown: Shown): Matrix {
  const groups = groupsOf(shown.reach.classes, shown.by, shown.after.resources);
  const cells = new Map<Group, Map<Group, { readonly before: Set<string>; readonly after: Set<string> }>>();
  // Most pairs have the same cells as others.
  const texts = new Map<PairReach["cells"], Readonly<Record<"before" | "after", string>>>();
  for (const { source, destination, cells: own } of pairsOf(shown, groups)) {
    const text = texts.get(own) ?? { before: allowedText(own, "before"), after: allowedText(own, "after") };
    texts.set(own, text);
    for (const from of groups.get(source) ?? []) {
      const row = cells.get(from) ?? new Map();
      cells.set(from, row);
      for (const to of groups.get(destination) ?? []) {
        if (!isOfNamespace(shown.namespace, from, to)) continue;
        const cell = row.get(to) ?? { before: new Set(), after: new Set() };
        row.set(to, cell);
        cell.before.add(text.before);
        cell.after.add(text.after);
      }
    }
  }
  const all = Array.from(cells).flatMap(([from, row]) =>
    Array.from(row, ([to, { before, after }]) => ({ from, to, before: textOf(before), after: textOf(after) })),
  );
  const used = new Set(all.flatMap(({ from, to }) => [from, to]));
  const rank = ({ kind }: Group) => ["workload", "host", "outside"].indexOf(kind);
  const sorted = [...used].sort((left, right) => rank(left) - rank(right) || (left.name < right.name ? -1 : 1));
  return { groups: sorted, cells: all, isCompared: shown.isCompared };
}

function allowedText(cells: readonly ReachCell[], state: "before" | "after"): string {
  const allowed = cells.filter((cell) => cell[state] === "allowed");
  return allowed.length === 0 ? NOTHING : packetsText(allowed, cells);
}

/** Members of a group may differ, and IP versions. */
function textOf(texts: ReadonlySet<string>): string {
  const [only = NOTHING, ...others] = texts;
  if (others.length === 0) return only;
  const some = [...texts].filter((text) => text !== NOTHING);
  return `${some.includes(EVERYTHING) ? EVERYTHING : some.join(" or ")}, for some`;
}

function jsonOf({ cells, isCompared, groups }: Matrix): string {
  const rows = cells.map(({ from, to, before, after }) => ({
    ...{ from: from.name, to: to.name },
    ...(isCompared ? { before, after, changed: before !== after } : { allowed: after }),
  }));
  return `${JSON.stringify({ groups: groups.map(({ kind, name }) => ({ kind, name })), cells: rows }, undefined, 2)}\n`;
}

function csvOf({ cells, isCompared }: Matrix): string {
  const header = isCompared ? ["from", "to", "before", "after", "changed"] : ["from", "to", "allowed"];
  const rows = cells.map(({ from, to, before, after }) => {
    const said = isCompared ? [before, after, before === after ? "no" : "yes"] : [after];
    return [from.name, to.name, ...said];
  });
  return [header, ...rows].map((row) => `${row.map(quotedField).join(",")}\r\n`).join("");
}

/** A name that begins like a formula is not one. */
function quotedField(text: string): string {
  const safe = /^[=+\-@]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
