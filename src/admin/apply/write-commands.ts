/** `apply`, `create` and `replace`: they differ in whether the resource must exist, and `apply` keeps what it does not mention. */

import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { withoutEffect } from "../../model/without-effect.ts";
import { withDatastore, withNewDatastore } from "../datastore/open.ts";
import type { CommandCode, ExitCode, Given } from "../main/command.ts";
import type { Clock, DatastoreAccess, Host, HostNetwork, Terminal } from "../main/context.ts";
import type { GivenResource } from "../manifest/manifest.ts";
import { readGivenResources } from "../manifest/sources.ts";
import type { ActionResult } from "../resources/action-result.ts";
import { isDryRun, surroundingsOf } from "../resources/dry-run.ts";
import { forEachResource, isOfOneResource } from "../resources/for-each-resource.ts";
import { openOverlay } from "../resources/overlay-store.ts";
import { withPolicyNotes } from "../resources/policy-notes.ts";
import { DecodedOnce } from "../resources/stored.ts";
import { type WriteMode, type WriteOutcome, writeResource } from "../resources/write.ts";
import { noteOnceWritten } from "../resources/written-note.ts";
import { paintStderr } from "../terminal/paint.ts";
import { SKIP_EXISTS_OPTION } from "./options.ts";

/** The command of a mode. */
export function writing(mode: WriteMode): CommandCode {
  return {
    async run(context: DatastoreAccess & Host & Clock, given: Given) {
      const all = await readGivenResources(context, given);
      await printWarnings(all, context);
      // A dry run does not create a datastore either.
      const open = mode === "replace" || isDryRun(given) ? withDatastore : withNewDatastore;
      return open(context, given, (store) => writeAll(store, all, { mode, context, given }));
    },
  };
}

/** On stderr, before anything is written. A host that cannot be read has no warnings. */
async function printWarnings(all: readonly GivenResource[], context: Terminal & HostNetwork): Promise<void> {
  for (const { kind, resource } of all) {
    const warnings = (await kind.warnings?.(resource, context).catch(() => [])) ?? [];
    for (const warning of warnings) context.stderr(`warning: ${warning}\n`);
  }
}

const WRITTEN: ReadonlySet<string> = new Set<WriteOutcome["action"]>(["created", "configured", "replaced"]);

interface Writing {
  readonly mode: WriteMode;
  readonly context: DatastoreAccess & Host & Clock;
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
