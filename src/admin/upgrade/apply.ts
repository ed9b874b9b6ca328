import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { quoted } from "../../quote.ts";
import { applyPlan } from "../../upgrade/engine/apply.ts";
import { isUnfinished } from "../../upgrade/engine/ledger.ts";
import type { Run } from "../../upgrade/engine/run.ts";
import { decodePlan, type UpgradePlan } from "../../upgrade/engine/upgrade-plan.ts";
import { EXIT_OK, type ExitCode, type Given, wantsJson } from "../main/command.ts";
import type { Clock, DatastoreAccess, Files, Host, Terminal } from "../main/context.ts";
import { DEFAULT_PLAN_FILE } from "./options.ts";
import { reportEvents } from "./report-events.ts";
import { withRun } from "./site.ts";

export async function run(context: DatastoreAccess & Host & Clock, given: Given): Promise<ExitCode> {
  const plan = await givenPlan(context, given);
  const report = reportEvents(context, given);
  const work = (run: Run) => applyPlan(run, plan instanceof PluginError ? withoutFile(context, run, plan) : plan);
  const outcome = await withRun(context, given, { report, work });
  const state = outcome === "complete" ? "is complete: there is nothing to do" : "is complete";
  const next = `Check it at any time: ${identity.adminTool} upgrade verify`;
  context.stdout(wantsJson(given) ? `${JSON.stringify({ kind: "complete" })}\n` : `The upgrade ${state}. ${next}\n`);
  return EXIT_OK;
}

/**
 * Without --plan it need not exist: a run that has begun has its plan in the cluster. So a file that others may have
 * changed, somewhere where the command happens to run, is returned as the reason not to use it.
 */
async function givenPlan(context: Files, given: Given): Promise<UpgradePlan | PluginError | undefined> {
  const named = given.values.get("plan");
  const file = named ?? DEFAULT_PLAN_FILE;
  const text = await context.readOwnFile(file).catch((failure: unknown) => {
    if (named === undefined && failure instanceof PluginError) return failure;
    if (!isMissing(failure)) throw failure;
    if (named === undefined) return undefined;
    throw new PluginError("resource-missing", `Cannot apply the plan ${quoted(named)}: there is no such file`, {
      details: `make it with ${identity.adminTool} upgrade plan --plan ${named}, or leave out --plan to continue an upgrade`,
    });
  });
  return typeof text === "string" ? decodePlan(text, file) : text;
}

/** Only a run that has begun goes on without it. */
function withoutFile({ stderr }: Terminal, { ledger: { current } }: Run, refusal: PluginError): undefined {
  if (current === undefined || !isUnfinished(current)) throw refusal;
  stderr(`Warning: ${refusal.message}; continuing with the plan that is recorded in the cluster\n`);
}

function isMissing(failure: unknown): boolean {
  return failure instanceof Error && "code" in failure && failure.code === "ENOENT";
}
