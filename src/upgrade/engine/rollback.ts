/** Goes back: the steps that were begun, in reverse order. May be interrupted and repeated. */
import { PluginError } from "../../errors.ts";
import type { Obstacle } from "./facts.ts";
import { withoutProblem } from "./ledger.ts";
import {
  type PlannedStep,
  plannedSteps,
  type Run,
  readPlan,
  recordProblem,
  requireLedger,
  stateOf,
  stepSite,
  whileTemporary,
  writeStep,
} from "./run.ts";
import type { Step } from "./step.ts";
import type { UpgradePlan } from "./upgrade-plan.ts";

/** What a rollback does with a step, told before anything happens. */
export interface RollbackLimit {
  readonly step: string;
  readonly title: string;
  /** "keep": it cannot be undone. "nothing": it had nothing to do. */
  readonly action: "undo" | "keep" | "nothing";
  /** What it cannot bring back. */
  readonly limit?: string;
}

export interface RollbackPlan {
  readonly run: string;
  readonly from: string;
  readonly to: string;
  /** In the order in which they are undone. */
  readonly steps: readonly RollbackLimit[];
  /** Why nothing can be undone any more. */
  readonly obstacles: readonly Obstacle[];
}

export async function planRollback(run: Run): Promise<RollbackPlan> {
  const { plan, steps } = await readRun(run);
  return {
    run: plan.run,
    from: plan.facts.target,
    to: plan.facts.version,
    steps: steps.map(({ step, plan: { cannotBeUndone } }) => {
      const action = actionOf(run, step);
      const limit = action === "nothing" || cannotBeUndone === undefined ? {} : { limit: cannotBeUndone };
      return { step: step.name, title: step.title, action, ...limit };
    }),
    obstacles: await obstaclesOf(run, plan, steps),
  };
}

export async function rollBack(run: Run): Promise<void> {
  const { plan, steps } = await readRun(run);
  const { endedAt: _, ...open } = requireLedger(run);
  const refusal = refusalOf(await obstaclesOf(run, plan, steps));
  if (refusal !== undefined) {
    const [first] = steps;
    if (open.phase === "rolling-back" && first !== undefined) await recordProblem(run, first.step.name, refusal);
    throw refusal;
  }
  await run.ledger.write({ ...open, phase: "rolling-back", steps: open.steps.map(withoutProblem) });
  for (const [index, each] of steps.entries()) {
    run.report({ kind: "begun", step: each.step.name, title: each.step.title, number: index + 1, of: steps.length });
    try {
      await undo(run, plan, each);
    } catch (failure) {
      await recordProblem(run, each.step.name, failure);
      throw failure;
    }
  }
  await run.ledger.write({ ...requireLedger(run), phase: "rolled-back", endedAt: run.site.now().toISOString() });
}

async function readRun(run: Run): Promise<{ readonly plan: UpgradePlan; readonly steps: readonly PlannedStep[] }> {
  const { current } = run.ledger;
  if (current === undefined || current.phase === "rolled-back") {
    const state = current === undefined ? "there is no upgrade in this cluster" : "it is rolled back already";
    throw new PluginError("resource-missing", `Cannot roll back: ${state}`);
  }
  const plan = await readPlan(run.backups(current.run), current);
  const isBegun = ({ step }: PlannedStep) => !["pending", "rolled-back"].includes(stateOf(run, step.name));
  return { plan, steps: plannedSteps(run.steps, plan).filter(isBegun).toReversed() };
}

async function obstaclesOf(run: Run, plan: UpgradePlan, steps: readonly PlannedStep[]): Promise<readonly Obstacle[]> {
  const all: Obstacle[] = [];
  for (const { step, plan: stepPlan } of steps) {
    if (step.rollbackObstacles === undefined) continue;
    all.push(...(await step.rollbackObstacles(stepSite(run, plan, step.name), stepPlan)));
  }
  return requireLedger(run).phase === "complete" ? all.map((each) => ({ ...each, remedy: COMPLETE })) : all;
}

/** Instead of the advice to continue. */
const COMPLETE = "the upgrade is complete, so there is nothing to continue: upgrade verify checks it";

function refusalOf(obstacles: readonly Obstacle[]): PluginError | undefined {
  if (obstacles.length === 0) return undefined;
  const reasons = obstacles.map(({ message }) => message).join("; ");
  return new PluginError("resource-in-use", `Cannot roll back: ${reasons}`, {
    details: obstacles.map(({ remedy }) => remedy).join("; "),
  });
}

/** A step that had nothing to do has no time of its start. */
function actionOf(run: Run, step: Step): RollbackLimit["action"] {
  const recorded = requireLedger(run).steps.find(({ name }) => name === step.name);
  if (recorded?.startedAt === undefined) return "nothing";
  return step.rollback === undefined ? "keep" : "undo";
}

async function undo(run: Run, plan: UpgradePlan, { step, plan: stepPlan }: PlannedStep): Promise<void> {
  const { name } = step;
  const startedAt = run.site.now().getTime();
  const action = actionOf(run, step);
  const site = stepSite(run, plan, name);
  await whileTemporary(run, site, async () => {
    if (action !== "undo") return;
    await writeStep(run, name, { state: "rolling-back", endedAt: undefined });
    await step.rollback?.(site, stepPlan);
  });
  const end = run.site.now();
  await whileTemporary(run, site, () => writeStep(run, name, { state: "rolled-back", endedAt: end.toISOString() }));
  const outcome = action === "undo" ? "rolled back" : action === "keep" ? "kept" : "unchanged";
  run.report({ kind: "done", step: name, outcome, seconds: (end.getTime() - startedAt) / 1_000 });
}
