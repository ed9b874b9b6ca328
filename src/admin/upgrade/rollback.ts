import { identity } from "../../identity.ts";
import { planRollback, type RollbackPlan, rollBack } from "../../upgrade/engine/rollback.ts";
import { type Command, EXIT_FAILED, EXIT_OK, wantsJson } from "../main/command.ts";
import { HELM_OPTION } from "./helm.ts";
import { CONTEXT_OPTION, DEFAULT_PLAN_FILE } from "./options.ts";
import { reportEvents } from "./report-events.ts";
import { withReadingRun, withRun } from "./site.ts";

export const upgradeRollback: Command = {
  kind: "command",
  name: "rollback",
  summary: "Undo the upgrade, as far as that is possible",
  description: [
    "Without --yes it only says what it would undo and what it cannot bring back, and the exit code is 1. With --yes it undoes the steps",
    "that were begun, the last one first. It may be interrupted or killed at any moment: the same command continues.",
  ].join("\n"),
  options: [
    { name: "yes", summary: "Do it: the limits are known" },
    { name: "plan", value: "FILE", summary: `File of the plan; copies are beside it (default ${DEFAULT_PLAN_FILE})` },
    HELM_OPTION,
    CONTEXT_OPTION,
  ],
  needsDatastore: true,
  versionCheck: "refuse",
  examples: [
    { command: "upgrade rollback", does: "What would be undone, and what stays?" },
    { command: "upgrade rollback --yes", does: "Undo the upgrade" },
  ],
  async run(context, given) {
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
  },
};

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
