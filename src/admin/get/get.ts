import { quoted } from "../../quote.ts";
import { reportNothingFound } from "../datastore/notice.ts";
import { withDatastore } from "../datastore/open.ts";
import type { AdminKind } from "../kinds/kind.ts";
import {
  type Command,
  type Context,
  EXIT_FAILED,
  EXIT_OK,
  type ExitCode,
  type Given,
  UsageError,
} from "../main/command.ts";
import { reportError } from "../main/report-error.ts";
import { FILE_OPTIONS } from "../manifest/sources.ts";
import { ALL_NAMESPACES_OPTION, type Found, findSelected, selectionsOf } from "../resources/find.ts";
import { isSelected, SELECTOR_OPTION, selectorOf, withLabels } from "../resources/label-selector.ts";
import { KIND_WORDS, NAMESPACE_OPTION, type Selection } from "../resources/reference.ts";
import { resolveSelections } from "../resources/resolve-name.ts";
import type { Stored } from "../resources/stored.ts";
import { FORMAT_OPTION, formatOf, type OutputFormat } from "./output-format.ts";
import { type Answer, ResourcePrinter, TABLE_OPTIONS } from "./print.ts";
import { cellNamed } from "./resource-tables.ts";
import { watchResources } from "./watch.ts";

export const getCommand: Command = {
  kind: "command",
  name: "get",
  summary: "Show one or more resources",
  description: [
    "KIND is a singular, plural or short name in any case (ippool, IPPools, ipp …), or several separated by commas.",
    "Without NAME, all resources of the kind are shown. NAME may be NAMESPACE/NAME; a workload endpoint is also named by its",
    "pod or container, or by the beginning of the container ID. container is another name of workloadendpoint. A container in several",
    "networks has an endpoint in each of them: its name shows them all.",
    "yaml and json output includes the resourceVersion and can be applied again.",
    "Unreadable resources are reported on stderr, and the exit code is then 1.",
    "jsonpath templates are those of kubectl, with fields (.a, ['a']), indices ([0], [-1]), slices ([0:2]), [*],",
    'filters ([?(@.a=="b")]), texts ({"\\n"}) and {range .items[*]}…{end}; other expressions are refused.',
    "With -w the resources are printed again when they change, until Ctrl-C (exit code 130).",
  ].join("\n"),
  operands: "KIND [NAME…] | KIND/NAME…",
  completes: KIND_WORDS,
  completesNames: "many",
  options: [
    FORMAT_OPTION,
    ...FILE_OPTIONS,
    SELECTOR_OPTION,
    NAMESPACE_OPTION,
    ALL_NAMESPACES_OPTION,
    ...TABLE_OPTIONS,
    {
      name: "export",
      summary: "Print resources that are requested by name without what the datastore and the namespace add",
    },
    { name: "watch", letter: "w", summary: "Print the resources, then each of them when it changes, until Ctrl-C" },
    { name: "output-watch-events", summary: "With -w, also print whether a resource was ADDED, MODIFIED or DELETED" },
  ],
  needsDatastore: true,
  examples: [
    { command: "get ippools", does: "List all pools" },
    { command: "get pool blue -o yaml", does: "Show a pool as YAML" },
    { command: "get nodes -o wide -l rack=a", does: "List the nodes with a label, with all columns" },
    {
      command: "get nodes -l \"rack in {'a', 'b'}\" --show-labels",
      does: "Select with an expression, and show labels",
    },
    { command: "get wep -A -o name", does: "List the workload endpoints of all namespaces" },
    {
      command: `get pools -o jsonpath='{range .items[*]}{.metadata.name} {.spec.cidr}{"\\n"}{end}'`,
      does: "Print two fields of each pool",
    },
    { command: "get pools -o custom-columns=NAME:.metadata.name,CIDR:.spec.cidr", does: "Print them as a table" },
    { command: "get pools -o custom-columns=NAME,CIDR,NAT", does: "The same, with columns of -o wide" },
    { command: "get pool blue -o yaml --export", does: "Print a pool as it can be created elsewhere" },
    { command: "get containers", does: "List the endpoints of the containers, with their addresses" },
    { command: "get wep web -o yaml", does: "Show the endpoint of a container or pod" },
    { command: "get wep -A -w", does: "Follow the workload endpoints" },
  ],
  async run(context, given) {
    const wanted = await selectionsOf(context, given);
    const selector = selectorOf(given);
    const format = formatOf(given);
    requireColumns(
      format,
      wanted.map(({ kind }) => kind),
    );
    const printer = new ResourcePrinter(format, given, context);
    return withDatastore(context, given, async (store) => {
      const selections = await resolveSelections(store, wanted);
      const answers: Found[] = [];
      for (const selection of selections)
        answers.push(exportedIf(given, selection, await findSelected(store, selection, given)));
      const all = answers.flatMap((answer) => answer.found);
      const found = (await withLabels(store, all, given)).filter((each) => isSelected(each, selector));
      const failures = answers.flatMap((answer) => answer.failures);
      if (given.switches.has("watch")) {
        for (const failure of failures) reportError(context, failure);
        if (failures.some((failure) => failure.kind === "resource-missing")) return EXIT_FAILED;
        return watchResources(store, { selections, selector, found, printer, context, given });
      }
      const isSingle = selections.length === 1 && selections[0]?.names.length === 1;
      const kinds = selections.map(({ kind }) => kind);
      if (found.length === 0 && failures.length === 0 && printer.isTable) await reportNothingFound(context, store);
      return print(context, printer, { kinds, found, failures, isSingle });
    });
  },
};

/** As in the peer's tool, only what is requested by name or with -f is exported. */
function exportedIf(given: Given, { names }: Selection, { found, failures }: Found): Found {
  const isExported = given.switches.has("export") && names.length > 0;
  return { found: isExported ? found.map(exported) : found, failures };
}

/** A column without a path must be one of the requested kinds. */
function requireColumns(format: OutputFormat, kinds: readonly AdminKind[]): void {
  if (format.kind !== "custom-columns") return;
  for (const { header, path } of format.columns) {
    if (path !== undefined || kinds.some((kind) => cellNamed(kind, header) !== undefined)) continue;
    const known = [...new Set(kinds.flatMap(({ columns }) => columns.map((column) => column.header)))];
    const others = known.map((column) => column.replaceAll(" ", "")).join(", ");
    throw new UsageError(`${quoted(header)} is not a column; write HEADER:PATH, or one of NAME, ${others}`);
  }
}

function print(context: Context, printer: ResourcePrinter, answer: Answer & Found): ExitCode {
  const { found, failures } = answer;
  if (found.length > 0 || (failures.length === 0 && !printer.isTable)) context.stdout(printer.list(answer));
  for (const failure of failures) reportError(context, failure);
  return failures.length === 0 ? EXIT_OK : EXIT_FAILED;
}

function exported(stored: Stored): Stored {
  const { status: _, ...resource } = stored.resource;
  const { name, labels, annotations } = resource.metadata;
  const metadata = {
    name,
    ...(labels === undefined ? {} : { labels }),
    ...(annotations === undefined ? {} : { annotations }),
  };
  return { ...stored, resource: { ...resource, metadata } };
}
