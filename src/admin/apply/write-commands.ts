/** `apply`, `create` and `replace`: they differ in whether the resource must exist, and `apply` keeps what it does not mention. */
import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { withoutEffect } from "../../model/without-effect.ts";
import { withDatastore, withNewDatastore } from "../datastore/open.ts";
import type { Command, Context, Example, ExitCode, Given } from "../main/command.ts";
import type { Option } from "../main/option.ts";
import type { GivenResource } from "../manifest/manifest.ts";
import { FILE_OPTIONS, readGivenResources } from "../manifest/sources.ts";
import type { ActionResult } from "../resources/action-result.ts";
import { DRY_RUN_OPTION, isDryRun, surroundingsOf } from "../resources/dry-run.ts";
import { forEachResource, isOfOneResource } from "../resources/for-each-resource.ts";
import { openOverlay } from "../resources/overlay-store.ts";
import { withPolicyNotes } from "../resources/policy-notes.ts";
import { NAMESPACE_OPTION } from "../resources/reference.ts";
import { DecodedOnce } from "../resources/stored.ts";
import { type WriteMode, type WriteOutcome, writeResource } from "../resources/write.ts";
import { noteOnceWritten } from "../resources/written-note.ts";
import { paintStderr } from "../terminal/paint.ts";

const COMMON_DESCRIPTION = [
  "All documents are validated before anything is written; unknown fields and duplicate keys are errors. A problem names its file and line.",
  "If a resource has a resourceVersion, it is written only if the stored resource still has that version.",
  "Fields that have no effect in this version are reported on stderr.",
  "So is whom a change of policies, profiles, tiers, network sets, endpoints or labels closes or opens, and whose rules match others",
  "than before (changes); with --dry-run too. Settings of node agents, and what policies with preDNAT or doNotTrack do to single",
  "packets, are not compared: see policy explain.",
];

const APPLY_DESCRIPTION = [
  "Everything is checked before anything is written, against the datastore too: overlapping pools, immutable fields.",
  "Labels, annotations and other metadata that a document does not mention are kept; replace removes them.",
];

const SKIP_EXISTS_OPTION: Option = {
  name: "skip-exists",
  summary: "Leave resources that exist already as they are, and do not fail",
};

export const applyCommand = writeCommand("apply", "Create resources, or change existing ones", [
  { command: "apply -f pools.yaml", does: "Create or update the resources in a file" },
  { command: "apply -f manifests/ -R -o json", does: "Apply all files below a directory, with JSON output" },
  { command: "apply -f - --dry-run < pools.yaml", does: "Check what would be done with standard input" },
]);

export const createCommand = writeCommand("create", "Create new resources", [
  { command: "create -f pool.yaml", does: "Create a pool; fails if it exists" },
  { command: "create -f - < pool.json", does: "Create from standard input" },
  { command: "create -f pools/ --skip-exists", does: "Create what does not exist yet" },
]);

export const replaceCommand = writeCommand("replace", "Replace existing resources", [
  {
    command: "replace -f pool.yaml",
    does: "Replace a pool; fails if it does not exist, or has changed since its resourceVersion",
  },
]);

function writeCommand(mode: WriteMode, summary: string, examples: readonly Example[]): Command {
  return {
    kind: "command",
    name: mode,
    summary,
    description: [...COMMON_DESCRIPTION, ...(mode === "apply" ? APPLY_DESCRIPTION : [])].join("\n"),
    options: [...FILE_OPTIONS, ...(mode === "create" ? [SKIP_EXISTS_OPTION] : []), NAMESPACE_OPTION, DRY_RUN_OPTION],
    needsDatastore: true,
    examples,
    async run(context, given) {
      const all = await readGivenResources(context, given);
      await printWarnings(all, context);
      // A dry run does not create a datastore either.
      const open = mode === "replace" || isDryRun(given) ? withDatastore : withNewDatastore;
      return open(context, given, (store) => writeAll(store, all, { mode, context, given }));
    },
  };
}

/** On stderr, before anything is written. A host that cannot be read has no warnings. */
async function printWarnings(all: readonly GivenResource[], context: Context): Promise<void> {
  for (const { kind, resource } of all) {
    const warnings = (await kind.warnings?.(resource, context).catch(() => [])) ?? [];
    for (const warning of warnings) context.stderr(`warning: ${warning}\n`);
  }
}

const WRITTEN: ReadonlySet<string> = new Set<WriteOutcome["action"]>(["created", "configured", "replaced"]);

interface Writing {
  readonly mode: WriteMode;
  readonly context: Context;
  readonly given: Given;
}

async function writeAll(store: Datastore, all: readonly GivenResource[], writing: Writing): Promise<ExitCode> {
  const { mode, given } = writing;
  const { context, store: target } = surroundingsOf(given, { store, context: writing.context });
  const decoded = new DecodedOnce();
  const write = (on: Datastore, each: GivenResource) =>
    writeResource(on, each, { mode, decoded, now: () => context.now(), uuid: () => context.uuid() });

  if (mode === "apply" && all.length > 1) {
    const overlay = openOverlay(store);
    const failures = await findFailures(all, (each) => write(overlay, each));
    if (failures.size > 0) return reportFailures(all, failures, writing);
  }
  const written: GivenResource[] = [];
  const code = await withPolicyNotes(target, { context, given, kinds: new Set(all.map(({ kind }) => kind)) }, (noted) =>
    forEachResource(context, given, {
      all,
      async act(each) {
        const done = await unlessExists(given, () => write(noted, each));
        if (WRITTEN.has(done.action)) written.push(each);
        return { ...done, warnings: withoutEffect(each.kind.kind, each.resource.spec) };
      },
    }),
  );
  // At the end: a later document may be what an earlier one lacks.
  for (const each of written) {
    const note = await noteOnceWritten(target, each);
    if (note !== undefined) context.stderr(`${paintStderr(context).yellow("note:")} ${note}\n`);
  }
  return code;
}

/** With --skip-exists, what exists already is not a failure. */
async function unlessExists(given: Given, write: () => Promise<ActionResult>): Promise<ActionResult> {
  try {
    return await write();
  } catch (failure) {
    const isSkipped = given.switches.has(SKIP_EXISTS_OPTION.name);
    if (isSkipped && failure instanceof PluginError && failure.kind === "resource-exists") {
      return { action: "already exists" };
    }
    throw failure;
  }
}

type Failures = ReadonlyMap<GivenResource, PluginError>;

async function findFailures(
  all: readonly GivenResource[],
  attempt: (each: GivenResource) => Promise<unknown>,
): Promise<Failures> {
  const failures = new Map<GivenResource, PluginError>();
  for (const each of all) {
    try {
      await attempt(each);
    } catch (failure) {
      if (!isOfOneResource(failure)) throw failure;
      failures.set(each, failure);
    }
  }
  return failures;
}

async function reportFailures(
  all: readonly GivenResource[],
  failures: Failures,
  { context, given }: Writing,
): Promise<ExitCode> {
  const code = await forEachResource(context, given, {
    all,
    async act(each) {
      const failure = failures.get(each);
      if (failure) throw failure;
      return { action: "not applied" };
    },
  });
  context.stderr(`Nothing was written: ${failures.size} of ${all.length} resources cannot be applied.\n`);
  return code;
}
