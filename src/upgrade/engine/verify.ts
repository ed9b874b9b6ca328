/** Whether an upgrade is done and right, step by step. Reads only. */
import { PluginError } from "../../errors.ts";
import { type PlannedStep, plannedSteps, type Run, readPlan, requireLedger, stateOf, stepSite } from "./run.ts";
import type { UpgradePlan } from "./upgrade-plan.ts";

export interface StepVerification {
  readonly step: string;
  readonly title: string;
  readonly problems: readonly string[];
}

export async function verifyRun(run: Run): Promise<readonly StepVerification[]> {
  const ledger = requireLedger(run);
  const plan = await readPlan(run.backups(ledger.run), ledger);
  const results: StepVerification[] = [];
  for (const each of plannedSteps(run.steps, plan)) {
    const { name, title } = each.step;
    results.push({ step: name, title, problems: await problemsOf(run, plan, each) });
  }
  return results;
}

async function problemsOf(run: Run, whole: UpgradePlan, { step, plan }: PlannedStep): Promise<readonly string[]> {
  const state = stateOf(run, step.name);
  if (state === "pending") return ["it has not begun"];
  if (state === "rolled-back" || (state === "done" && step.isTemporary)) return [];
  const site = stepSite(run, whole, step.name);
  try {
    const remaining = (await step.remaining(site, plan)).map((line) => `not done: ${line}`);
    const wrong = (await step.verify?.(site, plan)) ?? [];
    return [...remaining, ...wrong];
  } catch (failure) {
    // In the middle of an upgrade, such as while a kind is not served yet; the other steps are shown.
    if (failure instanceof PluginError) return [`it cannot be checked: ${failure.message}`];
    throw failure;
  }
}
