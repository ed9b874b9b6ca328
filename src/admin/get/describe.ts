import type { Datastore } from "../../datastore/datastore.ts";
import { ENDPOINT, GLOBAL_NETWORK_POLICY, HOST_ENDPOINT, NETWORK_POLICY } from "../../model/kinds.ts";
import { formatYaml } from "../../yaml.ts";
import { reportNothingFound } from "../datastore/notice.ts";
import { withDatastore } from "../datastore/open.ts";
import type { DescribedSection } from "../kinds/kind.ts";
import { type Command, type Context, EXIT_FAILED, EXIT_OK, wantsJson } from "../main/command.ts";
import { reportError } from "../main/report-error.ts";
import { FILE_OPTIONS } from "../manifest/sources.ts";
import { isAppliedAt, type LocalNode, readLocalNode } from "../policy/local-enforcement.ts";
import { ALL_NAMESPACES_OPTION, type Found, findSelected, selectionsOf } from "../resources/find.ts";
import { isSelected, SELECTOR_OPTION, selectorOf, withLabels } from "../resources/label-selector.ts";
import { KIND_WORDS, NAMESPACE_OPTION } from "../resources/reference.ts";
import { resolveSelections } from "../resources/resolve-name.ts";
import type { Stored } from "../resources/stored.ts";
import { hanging, stdoutPage } from "../terminal/page.ts";
import { printable } from "../terminal/printable.ts";
import { formatRows } from "../terminal/table.ts";
import { ageOf } from "./age.ts";
import { NO_VALUE } from "./custom-columns.ts";

export const describeCommand: Command = {
  kind: "command",
  name: "describe",
  summary: "Show resources in detail, with related information",
  description: [
    "A pool with its usage and blocks, a node with its blocks, a policy with the endpoints that it selects, a workload endpoint with its",
    "addresses and the policies that apply to it in their order, a host endpoint with the policies that apply to it, the profile of a",
    "network with a word if its rules do not count. If the node agent of this host does not run, a note says so.",
  ].join("\n"),
  operands: "KIND [NAME…] | KIND/NAME…",
  completes: KIND_WORDS,
  completesNames: "many",
  options: [...FILE_OPTIONS, SELECTOR_OPTION, NAMESPACE_OPTION, ALL_NAMESPACES_OPTION],
  needsDatastore: true,
  examples: [
    { command: "describe ippool blue", does: "Show a pool, its usage and its blocks" },
    { command: "describe container web", does: "Show the endpoint of a container" },
    { command: "describe wep web", does: "Show the endpoint of a container or pod" },
    { command: "describe nodes -l rack=a", does: "Show the nodes with a label, and their blocks" },
    { command: "describe networkpolicy db -n shop", does: "Show a policy, and whom it selects" },
  ],
  async run(context, given) {
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
      for (const stored of found) described.push(await describe(store, stored, local));
      if (wantsJson(given)) context.stdout(`${JSON.stringify({ items: described }, undefined, 2)}\n`);
      else
        context.stdout(
          described.map(({ resource, related }) => formatDescribed(resource, related, context)).join("\n"),
        );
      if (found.length === 0 && failures.length === 0) await reportNothingFound(context, store);
      for (const failure of failures) reportError(context, failure);
      return failures.length === 0 ? EXIT_OK : EXIT_FAILED;
    });
  },
};

interface Described {
  readonly resource: Stored["resource"];
  readonly related: readonly DescribedSection[];
}

async function describe(
  store: Datastore,
  { kind, resource }: Stored,
  local: LocalNode | undefined,
): Promise<Described> {
  const related = (await kind.describe?.(store, resource)) ?? [];
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
function formatDescribed(resource: Stored["resource"], related: readonly DescribedSection[], context: Context): string {
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
