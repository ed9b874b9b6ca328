import { quoted } from "../../quote.ts";
import { withDatastore } from "../datastore/open.ts";
import { reportNothingFound } from "../datastore/report-nothing-found.ts";
import type { AdminKind } from "../kinds/kind.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, UsageError } from "../main/command.ts";
import type { Clock, ClusterAccess, DatastoreAccess } from "../main/context.ts";
import { reportError } from "../main/report-error.ts";
import { type Found, findSelected, selectionsOf } from "../resources/find.ts";
import { isSelected, selectorOf, withLabels } from "../resources/label-selector.ts";
import type { Selection } from "../resources/reference.ts";
import { resolveSelections } from "../resources/resolve-name.ts";
import type { Stored } from "../resources/stored.ts";
import { formatOf, type OutputFormat } from "./output-format.ts";
import { type Answer, ResourcePrinter } from "./print.ts";
import { cellNamed } from "./resource-tables.ts";
import { watchResources } from "./watch.ts";

export async function run(context: DatastoreAccess & Clock, given: Given): Promise<ExitCode> {
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
}

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

function print(context: ClusterAccess, printer: ResourcePrinter, answer: Answer & Found): ExitCode {
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
