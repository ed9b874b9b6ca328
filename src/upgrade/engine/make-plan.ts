/** Makes the plan of an upgrade: asks every step, reads only. */
import { PluginError } from "../../errors.ts";
import { isUnfinished, type Ledger } from "./ledger.ts";
import { changedPaths, observedObjects, readObjects } from "./observe-objects.ts";
import { clusterUid } from "./refuse-plan.ts";
import type { PlanningSite, Step, StepPlan } from "./step.ts";
import { newPlan, planDigest, type UpgradePlan } from "./upgrade-plan.ts";

/** A run that was begun: a new plan continues it. */
export interface EarlierRun {
  readonly ledger: Ledger;
  readonly plan: UpgradePlan;
}

export interface PlanRequest {
  readonly steps: readonly Step[];
  /** Of a new run. */
  readonly run: string;
  readonly now: Date;
  readonly earlier?: EarlierRun;
  /** Called before each step is planned. */
  readonly onStep?: (step: Step) => void;
}

export async function makePlan(site: PlanningSite, request: PlanRequest): Promise<UpgradePlan> {
  const { steps, run, now, onStep } = request;
  const earlier = request.earlier !== undefined && isUnfinished(request.earlier.ledger) ? request.earlier : undefined;
  const planned: StepPlan[] = [];
  for (const step of steps) {
    site.signal.throwIfAborted();
    onStep?.(step);
    const plan = await planStep(site, step, earlier);
    if (plan !== undefined) planned.push(plan);
  }
  const live = await readObjects(site.objects, changedPaths(planned));
  const cluster = await clusterUid(site.objects);
  return newPlan({
    run: earlier?.plan.run ?? run,
    ...(earlier === undefined ? {} : { continues: planDigest(earlier.plan) }),
    ...(cluster === undefined ? {} : { cluster }),
    madeAt: now.toISOString(),
    facts: site.facts,
    options: site.options,
    steps: planned,
    observed: observedObjects(live),
  });
}

/** What was begun stays as it was planned; so does what the run still needs although the cluster does not show it any more. */
async function planStep(
  site: PlanningSite,
  step: Step,
  earlier: EarlierRun | undefined,
): Promise<StepPlan | undefined> {
  const before = earlier?.plan.steps.find((each) => each.step === step.name);
  const state = earlier?.ledger.steps.find(({ name }) => name === step.name)?.state;
  if (before !== undefined && state !== undefined && state !== "pending") return before;
  try {
    return (await step.plan(site)) ?? before;
  } catch (failure) {
    if (!(failure instanceof PluginError)) throw failure;
    const { kind, message, details } = failure;
    throw new PluginError(kind, `Cannot plan step "${step.name}": ${message}`, { details, cause: failure });
  }
}
