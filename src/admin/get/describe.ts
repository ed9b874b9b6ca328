import type { Datastore } from "../../datastore/datastore.ts";
import { datastoreTime } from "../../ipam/allocator-means.ts";
import { ENDPOINT, GLOBAL_NETWORK_POLICY, HOST_ENDPOINT, NETWORK_POLICY } from "../../model/kinds.ts";
import { formatYaml } from "../../yaml.ts";
import { withDatastore } from "../datastore/open.ts";
import { reportNothingFound } from "../datastore/report-nothing-found.ts";
import type { DescribedSection } from "../kinds/kind.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, wantsJson } from "../main/command.ts";
import type { Call, Clock, DatastoreAccess, Host, Terminal } from "../main/context.ts";
import { reportError } from "../main/report-error.ts";
import { isAppliedAt, type LocalNode, readLocalNode } from "../policy/local-enforcement.ts";
import { type Found, findSelected, selectionsOf } from "../resources/find.ts";
import { isSelected, selectorOf, withLabels } from "../resources/label-selector.ts";
import { resolveSelections } from "../resources/resolve-name.ts";
import type { Stored } from "../resources/stored.ts";
import { hanging, stdoutPage } from "../terminal/page.ts";
import { printable } from "../terminal/printable.ts";
import { formatRows } from "../terminal/table.ts";
import { ageOf } from "./age.ts";
import { NO_VALUE } from "./custom-columns.ts";

export async function run(context: DatastoreAccess & Host & Clock, given: Given): Promise<ExitCode> {
  const selections = await selectionsOf(context, given);
  const selector = selectorOf(given);
  return withDatastore(context, given, async (store) => {
    const answers: Found[] = [];
    for (const selection of await resolveSelections(store, selections))
      answers.push(await findSelected(store, selection, given));
    const all = answers.flatMap((answer) => answer.found);
    const found = (await withLabels(store, all, given)).filter((each) => isSelected(each, selector));
    const failures = answers.flatMap((answer) => answer.failures);
    const described: Described[] = [];
    const local = found.some(({ kind }) => POLICY_WORDS.has(kind.kind))
      ? await readLocalNode(context, given)
      : undefined;
    const now = datastoreTime(store, context);
    for (const stored of found) described.push(await describe(store, stored, { local, now }));
    if (wantsJson(given)) context.stdout(`${JSON.stringify({ items: described }, undefined, 2)}\n`);
    else
      context.stdout(described.map(({ resource, related }) => formatDescribed(resource, related, context)).join("\n"));
    if (found.length === 0 && failures.length === 0) await reportNothingFound(context, store);
    for (const failure of failures) reportError(context, failure);
    return failures.length === 0 ? EXIT_OK : EXIT_FAILED;
  });
}

interface Described {
  readonly resource: Stored["resource"];
  readonly related: readonly DescribedSection[];
}

async function describe(
  store: Datastore,
  { kind, resource }: Stored,
  { local, now }: { readonly local: LocalNode | undefined; readonly now: Date },
): Promise<Described> {
  const related = (await kind.describe?.(store, resource, now)) ?? [];
  if (local?.unenforced === undefined || !POLICY_WORDS.has(kind.kind)) return { resource, related };
  const isHere = await isAppliedAt(local.name, resource, store);
  const notes = isHere ? [{ title: "Note", summary: local.unenforced, rows: [] }] : [];
  return { resource, related: [...related, ...notes] };
}

/** The kinds of which it says what policies do. */
const POLICY_WORDS: ReadonlySet<string> = new Set(
  [ENDPOINT, HOST_ENDPOINT, NETWORK_POLICY, GLOBAL_NETWORK_POLICY].map(({ kind }) => kind),
);

/** Of a section, nothing is left out on a narrow terminal; the spec is YAML, and stays as it is. */
function formatDescribed(
  resource: Stored["resource"],
  related: readonly DescribedSection[],
  context: Call & Terminal & Clock,
): string {
  const { width } = stdoutPage(context);
  const { name, namespace, labels = {}, annotations = {}, creationTimestamp, uid } = resource.metadata;
  const pairs = (map: Readonly<Record<string, string>>) => Object.entries(map).map(([key, value]) => `${key}=${value}`);
  const lines: readonly (readonly [string, readonly string[]])[] = [
    ["Name", [name]],
    ...(namespace === undefined ? [] : [["Namespace", [namespace]] as const]),
    ["Kind", [resource.kind]],
    ["API Version", [resource.apiVersion]],
    ["Labels", pairs(labels)],
    ["Annotations", pairs(annotations)],
    [
      "Created",
      creationTimestamp === undefined ? [] : [`${creationTimestamp} (${ageOf(creationTimestamp, context.now())} ago)`],
    ],
    ["UID", uid === undefined ? [] : [uid]],
  ];
  const sections = [
    { title: "Spec", summary: undefined, lines: formatYaml(resource.spec).trimEnd().split("\n") },
    ...related.map(({ title, summary, rows }) => ({
      title,
      summary,
      lines: summary !== undefined && rows.length === 0 ? [] : rowsOf(rows, width - INDENT.length),
    })),
  ];
  return [
    ...lines.flatMap(([title, values]) => fieldLines(title, values, width)),
    ...sections.flatMap(({ title, summary, lines: inner }) => [
      ...(summary === undefined ? [`${title}:`] : fieldLines(title, [summary], width)),
      ...inner.map((line) => `${INDENT}${line}`),
    ]),
    "",
  ].join("\n");
}

const TITLE_WIDTH = 14;

const INDENT = "  ";

function fieldLines(title: string, values: readonly string[], width: number): readonly string[] {
  const [first = NO_VALUE, ...others] = values.map(printable);
  return [
    ...hanging(`${title}:`.padEnd(TITLE_WIDTH), first, width),
    ...others.flatMap((value) => hanging(" ".repeat(TITLE_WIDTH), value, width)),
  ];
}

function rowsOf(rows: readonly (readonly string[])[], width: number): readonly string[] {
  return rows.length === 0 ? [NO_VALUE] : formatRows(rows, width);
}
