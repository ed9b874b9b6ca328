import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { unifiedDiff } from "../../unified-diff.ts";
import { formatYaml } from "../../yaml.ts";
import { withDatastore } from "../datastore/open.ts";
import { EXIT_OK, type ExitCode, type Given, UsageError, wantsJson } from "../main/command.ts";
import type { Clock, ClusterAccess, DatastoreAccess } from "../main/context.ts";
import { reportError } from "../main/report-error.ts";
import type { GivenResource } from "../manifest/manifest.ts";
import { readGivenResources } from "../manifest/sources.ts";
import { openOverlay } from "../resources/overlay-store.ts";
import { referenceText } from "../resources/reference.ts";
import { readOne, type Stored } from "../resources/stored.ts";
import { writeResource } from "../resources/write.ts";
import { type Paint, paint } from "../terminal/paint.ts";

/** As in `kubectl diff`: 1 is not a failure here. */
const EXIT_DIFFERENT = 1;
const EXIT_TROUBLE = 2;

export async function run(context: DatastoreAccess & Clock, given: Given): Promise<ExitCode> {
  try {
    const all = await readGivenResources(context, given);
    return await withDatastore(context, given, (store) => showDifferences(store, all, { context, given }));
  } catch (failure) {
    if (context.signal.aborted || failure instanceof UsageError) throw failure;
    reportError(context, failure);
    return EXIT_TROUBLE;
  }
}

interface Difference {
  readonly resource: string;
  readonly action: string;
  readonly diff: string;
}

async function showDifferences(
  store: Datastore,
  all: readonly GivenResource[],
  { context, given }: { readonly context: ClusterAccess & Clock; readonly given: Given },
): Promise<ExitCode> {
  const overlay = openOverlay(store);
  const differences: Difference[] = [];
  let hasFailed = false;
  for (const each of all) {
    try {
      const difference = await differenceOf(overlay, each, context);
      if (difference) differences.push(difference);
    } catch (failure) {
      if (!(failure instanceof PluginError) || failure.kind === "datastore-unavailable") throw failure;
      hasFailed = true;
      reportError(context, failure);
    }
  }
  if (wantsJson(given)) context.stdout(`${JSON.stringify({ differences }, undefined, 2)}\n`);
  else context.stdout(differences.map(({ diff }) => coloured(diff, paint(context))).join(""));
  if (hasFailed) return EXIT_TROUBLE;
  return differences.length === 0 ? EXIT_OK : EXIT_DIFFERENT;
}

/** `undefined` if apply would not change the resource. */
async function differenceOf(overlay: Datastore, given: GivenResource, context: Clock): Promise<Difference | undefined> {
  const { kind, name } = given;
  const resource = referenceText(kind, name);
  const before = await readOne(overlay, kind, name);
  const { action } = await writeResource(overlay, given, {
    mode: "apply",
    now: () => context.now(),
    uuid: () => context.uuid(),
  });
  if (action === "unchanged") return undefined;
  const diff = unifiedDiff(textOf(before), textOf(await readOne(overlay, kind, name)), {
    before: `${resource} (${before ? "stored" : "does not exist"})`,
    after: `${resource} (after apply)`,
  });
  return { resource, action, diff };
}

/** Without what apply itself adds. */
function textOf(stored: Stored | undefined): string {
  if (!stored) return "";
  const { resourceVersion: _, uid: __, creationTimestamp: ___, ...metadata } = stored.resource.metadata;
  return formatYaml({ ...stored.resource, metadata });
}

function coloured(diff: string, { red, green, bold }: Paint): string {
  const colour = (line: string) => {
    if (/^(---|\+\+\+) /.test(line)) return bold(line);
    return line.startsWith("-") ? red(line) : line.startsWith("+") ? green(line) : line;
  };
  return diff.split("\n").map(colour).join("\n");
}
