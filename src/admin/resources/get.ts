import type { Datastore } from "../../datastore/datastore.ts";
import type { ReadEach } from "../../datastore/read-each.ts";
import { PluginError } from "../../errors.ts";
import { nearestName } from "../../model/nearest-name.ts";
import { quoted } from "../../quote.ts";
import { formatSelectorError, parseSelector } from "../../selector/parse.ts";
import { type Selector, selects } from "../../selector/selector.ts";
import { type Command, type Context, EXIT_FAILED, EXIT_OK, type ExitCode, type Given, UsageError } from "../command.ts";
import { withDatastore } from "../datastore/open.ts";
import { reportError } from "../report-error.ts";
import { FORMAT_OPTION, formatOf, type Answer as Printed, printResources } from "./print.ts";
import {
  KIND_WORDS,
  NAMESPACE_OPTION,
  namespaceOf,
  parseSelections,
  referenceText,
  type Selection,
  USUAL_NAMESPACE,
} from "./reference.ts";
import { FILE_OPTION, readGivenResources } from "./sources.ts";
import { findAll, findOne, type Stored } from "./stored.ts";

export const getCommand: Command = {
  kind: "command",
  name: "get",
  summary: "Show one or more resources",
  description: [
    "KIND is a singular, plural or short name in any case (ippool, IPPools, ipp …), or several separated by commas.",
    "Without NAME, all resources of the kind are shown.",
    "yaml and json output includes the resourceVersion and can be applied again.",
    "Unreadable resources are reported on stderr, and the exit code is then 1.",
  ].join("\n"),
  operands: "KIND [NAME…] | KIND/NAME…",
  completes: KIND_WORDS,
  options: [
    FORMAT_OPTION,
    FILE_OPTION,
    {
      name: "selector",
      letter: "l",
      value: "SELECTOR",
      summary: "Show only resources whose labels match, for example rack == 'a'",
    },
    NAMESPACE_OPTION,
    { name: "all-namespaces", letter: "A", summary: "Show the resources of all namespaces" },
  ],
  needsDatastore: true,
  examples: [
    { command: "get ippools", does: "List all pools" },
    { command: "get pool blue -o yaml", does: "Show a pool as YAML" },
    { command: "get nodes -o wide -l \"rack == 'a'\"", does: "List the nodes with a label, with all columns" },
    { command: "get wep -A -o name", does: "List the workload endpoints of all namespaces" },
  ],
  async run(context, given) {
    if (given.switches.has("all-namespaces") && given.values.has(NAMESPACE_OPTION.name)) {
      throw new UsageError("--all-namespaces and --namespace cannot be combined");
    }
    const selections = await selectionsOf(context, given);
    const selector = selectorOf(given);
    return withDatastore(context, given, async (store) => {
      const answers: Found[] = [];
      for (const selection of selections) answers.push(await find(store, selection, given));
      const found = answers.flatMap((answer) => answer.found).filter(({ resource }) => isSelected(resource, selector));
      const failures = answers.flatMap((answer) => answer.failures);
      const isSingle = selections.length === 1 && selections[0]?.names.length === 1;
      const kinds = selections.map(({ kind }) => kind);
      return print(context, given, { kinds, found, failures, isSingle });
    });
  },
};

async function selectionsOf(context: Context, given: Given): Promise<readonly Selection[]> {
  if (!given.lists.has(FILE_OPTION.name)) return refuseNamesInAllNamespaces(parseSelections(given), given);
  if (given.operands.length > 0) throw new UsageError("Give either -f or KIND and NAME, not both");
  return (await readGivenResources(context, given)).map(({ kind, name }) => ({ kind, names: [name] }));
}

/** A name identifies one resource in one namespace. */
function refuseNamesInAllNamespaces(selections: readonly Selection[], given: Given): readonly Selection[] {
  const named = selections.find(({ kind, names }) => kind.namespaced && names.length > 0);
  if (!named || !given.switches.has("all-namespaces")) return selections;
  throw new UsageError(`A ${named.kind.kind} cannot be requested by name with --all-namespaces; use --namespace`);
}

function selectorOf(given: Given): Selector | undefined {
  const text = given.values.get("selector");
  if (text === undefined) return undefined;
  const parsed = parseSelector(text);
  if (parsed.ok) return parsed.selector;
  throw new UsageError(`${quoted(text)} is not a valid selector: ${formatSelectorError(parsed.error)}`);
}

function isSelected({ metadata }: Stored["resource"], selector: Selector | undefined): boolean {
  return selector === undefined || selects(selector, metadata.labels ?? {});
}

interface Found {
  readonly found: readonly Stored[];
  /** One for each resource that does not exist or is unreadable. */
  readonly failures: readonly PluginError[];
}

async function find(store: Datastore, { kind, names }: Selection, given: Given): Promise<Found> {
  const namespace = namespaceOf(given) ?? USUAL_NAMESPACE;
  const wanted = kind.namespaced && !given.switches.has("all-namespaces") ? namespace : undefined;
  if (names.length === 0) return foundIn(await findAll(store, kind, wanted));

  const found: Stored[] = [];
  const failures: PluginError[] = [];
  for (const name of names) {
    const answer = foundIn(await findOne(store, kind, name));
    found.push(...answer.found);
    failures.push(...answer.failures);
    if (answer.found.length + answer.failures.length === 0) failures.push(await notFound(store, { kind, name }));
  }
  return { found, failures };
}

function foundIn({ readable, unreadable }: ReadEach<Stored>): Found {
  return { found: readable, failures: unreadable.map(({ failure }) => failure) };
}

/** Suggests the existing resource with the most similar name. */
export async function notFound(
  store: Datastore,
  { kind, name }: { kind: Selection["kind"]; name: Selection["names"][number] },
): Promise<PluginError> {
  const { readable } = await findAll(store, kind, name.namespace);
  const others = readable.map(({ resource }) => resource.metadata.name);
  const nearest = nearestName(name.name, others);
  return new PluginError("resource-missing", `Cannot find ${referenceText(kind, name)}: it does not exist`, {
    details: nearest === undefined ? "" : `did you mean "${nearest}"?`,
  });
}

type Answer = Found & Pick<Printed, "kinds" | "isSingle">;

function print(context: Context, given: Given, { kinds, found, failures, isSingle }: Answer): ExitCode {
  const format = formatOf(given);
  const isTable = format === "table" || format === "wide";
  if (found.length > 0 || (failures.length === 0 && !isTable)) {
    const showsNamespace = given.switches.has("all-namespaces");
    context.stdout(printResources(format, { kinds, found, isSingle, showsNamespace, now: context.now() }));
  }
  if (found.length === 0 && failures.length === 0 && isTable) context.stderr("No resources found.\n");
  for (const failure of failures) reportError(context, failure);
  return failures.length === 0 ? EXIT_OK : EXIT_FAILED;
}
