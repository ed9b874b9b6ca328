/**
 * Performs an action on many resources: a failure does not stop the others, and makes the exit code 1. If the command
 * ends early, JSON output still lists what was done.
 */

import { describeFailure, PluginError } from "../../errors.ts";
import type { ResourceName } from "../../model/keys.ts";
import type { PublicKind } from "../../model/kinds.ts";
import { redact } from "../../redaction.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, wantsJson } from "../main/command.ts";
import type { ClusterAccess } from "../main/context.ts";
import { reportError } from "../main/report-error.ts";
import { paintStderr } from "../terminal/paint.ts";
import type { ActionResult } from "./action-result.ts";
import { isDryRun } from "./dry-run.ts";
import { referenceText } from "./reference.ts";

interface Named {
  readonly kind: PublicKind;
  readonly name: ResourceName;
}

export async function forEachResource<Each extends Named>(
  context: ClusterAccess,
  given: Given,
  work: { readonly all: readonly Each[]; readonly act: (each: Each) => Promise<ActionResult> },
): Promise<ExitCode> {
  const results: unknown[] = [];
  let code: ExitCode = EXIT_OK;
  const printJson = () => {
    const report = { ...(isDryRun(given) ? { dryRun: true } : {}), results };
    if (wantsJson(given)) context.stdout(`${JSON.stringify(report, undefined, 2)}\n`);
  };
  for (const each of work.all) {
    try {
      const done = withoutRevision(await work.act(each), given);
      const resource = referenceText(each.kind, done.name ?? each.name);
      results.push({ resource, action: done.action, ...resultOf(done) });
      if (!wantsJson(given)) context.stdout(`${resource} ${done.action}${isDryRun(given) ? " (dry run)" : ""}\n`);
      for (const warning of done.warnings ?? []) {
        context.stderr(`${paintStderr(context).yellow("warning:")} ${resource}: ${warning}\n`);
      }
      if (done.note !== undefined) context.stderr(`${paintStderr(context).yellow("note:")} ${done.note}\n`);
    } catch (failure) {
      if (context.signal.aborted || !isOfOneResource(failure)) {
        if (results.length > 0) printJson();
        throw failure;
      }
      code = EXIT_FAILED;
      const { kind: reason, retry } = failure;
      const resource = referenceText(each.kind, each.name);
      results.push({ resource, action: "failed", error: redact(describeFailure(failure)), reason, retry });
      reportError(context, failure);
    }
  }
  printJson();
  return code;
}

/** The revision of a write that did not happen means nothing. */
function withoutRevision(done: ActionResult, given: Given): ActionResult {
  const { revision: _, ...rest } = done;
  return isDryRun(given) ? rest : done;
}

/** Any other failure would affect all other resources too. */
export function isOfOneResource(failure: unknown): failure is PluginError {
  return failure instanceof PluginError && failure.kind !== "datastore-unavailable";
}

function resultOf({ revision, note, warnings = [] }: ActionResult): object {
  return {
    ...(revision === undefined ? {} : { resourceVersion: revision }),
    ...(note === undefined ? {} : { note }),
    ...(warnings.length === 0 ? {} : { warnings }),
  };
}
