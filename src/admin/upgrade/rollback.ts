import { identity } from "../../identity.ts";
import { planRollback, type RollbackPlan, rollBack } from "../../upgrade/engine/rollback.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode, type Given, wantsJson } from "../main/command.ts";
import type { Clock, DatastoreAccess, Host } from "../main/context.ts";
import { reportEvents } from "./report-events.ts";
import { withReadingRun, withRun } from "./site.ts";

export async function run(context: DatastoreAccess & Host & Clock, given: Given): Promise<ExitCode> {
  if (!given.switches.has("yes")) {
    const plan = await withReadingRun(context, given, (run) => planRollback(run));
    context.stdout(wantsJson(given) ? `${JSON.stringify(plan, undefined, 2)}\n` : limitsText(plan));
    const advice = plan.obstacles.length === 0 ? ": add --yes to do it" : "";
    if (!wantsJson(given)) context.stderr(`Nothing was changed${advice}\n`);
    return EXIT_FAILED;
  }
  await withRun(context, given, { report: reportEvents(context, given), work: (run) => rollBack(run) });
  if (!wantsJson(given)) context.stdout(`The upgrade is rolled back. See: ${identity.adminTool} status\n`);
  return EXIT_OK;
}

function limitsText({ run, from, to, steps, obstacles }: RollbackPlan): string {
  if (obstacles.length > 0) {
    return obstacles.map(({ message, remedy }) => `Cannot be rolled back: ${message}\n  ${remedy}\n`).join("");
  }
  return [
    `Rollback of upgrade ${run}, from ${from} to ${to}. Objects become as they were before it: what was edited since is lost.`,
    ...steps.flatMap(({ step, title, action, limit }, index) => [
      `${index + 1}. ${step}: ${ACTIONS[action]} (${title})`,
      ...(limit === undefined ? [] : [`   Cannot be undone: ${limit}`]),
    ]),
    "",
  ].join("\n");
}

const ACTIONS = { undo: "undone", keep: "stays as it is", nothing: "had nothing to do" } as const;
