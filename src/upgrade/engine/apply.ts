/**
 * Carries a plan out, from wherever it was interrupted.
 *
 *   drift? -> backups -> ledger -> for each step:  drift? -> what remains -> act -> what remains -> verify -> recorded as done
 *
 * Nothing is written before the backups are complete, and a step is recorded as begun before its first write. The first
 * step that fails stops the run; running it again continues there.
 */
import { PluginError } from "../../errors.ts";
import { driftBeforeStep, driftSincePlan } from "./drift.ts";
import type { Obstacle } from "./facts.ts";
import { isUnfinished, type Ledger, type LedgerStep, withoutProblem } from "./ledger.ts";
import { changedPaths, readObjects } from "./observe-objects.ts";
import { refuseOtherCluster, refuseUnusablePlan } from "./refuse-plan.ts";
import { encodeObjects } from "./restore-objects.ts";
import { planRollback } from "./rollback.ts";
import {
  objectsBackup,
  type PlannedStep,
  plannedSteps,
  type Run,
  readPlan,
  recordProblem,
  requireLedger,
  savePlan,
  stateOf,
  stepSite,
  whileTemporary,
  writeStep,
} from "./run.ts";
import type { StepPlan, StepSite } from "./step.ts";
import { planDigest, type UpgradePlan } from "./upgrade-plan.ts";

/** "complete": there is nothing to do, and nothing is written. A plan is carried out once; `upgrade verify` shows what was undone since. */
export type Application = "applied" | "complete";

/** `given`: absent if a run is to be continued. */
export async function applyPlan(run: Run, given: UpgradePlan | undefined): Promise<Application> {
  await refuseUnusablePlan(run, given);
  if (isComplete(run.ledger.current, given)) return "complete";
  const plan = await choosePlan(run, given);
  if (plan.steps.length === 0) return "complete";
  const steps = plannedSteps(run.steps, plan);
  refuseOtherRelease(run, plan);
  refuseObstacles(plan);
  await refuseOtherCluster(run, plan);
  await begin(run, plan);
  for (const [index, each] of steps.entries()) {
    const { step, plan: stepPlan } = each;
    const place = { number: index + 1, of: steps.length, estimatedSeconds: stepPlan.estimatedSeconds };
    run.report({ kind: "begun", step: step.name, title: step.title, ...place });
    await carryOut(run, plan, each);
  }
  const ledger = requireLedger(run);
  await run.ledger.write({ ...ledger, phase: "complete", endedAt: run.site.now().toISOString() });
  return "applied";
}

/** A run that was begun is continued, with its own plan or with one that was made to continue it. */
async function choosePlan(run: Run, given: UpgradePlan | undefined): Promise<UpgradePlan> {
  const ledger = run.ledger.current;
  if (ledger?.phase === "rolling-back") {
    await requireHaltedRollback(run, ledger);
    const plan = await readPlan(run.backups(ledger.run), ledger);
    if (given !== undefined && planDigest(given) !== planDigest(plan)) throw begunWithOther(ledger);
    return plan;
  }
  if (ledger === undefined || !isUnfinished(ledger)) {
    if (given !== undefined) return given;
    throw new PluginError("resource-missing", "Cannot apply: there is no plan", { details: "make one: upgrade plan" });
  }
  if (given === undefined || planDigest(given) === ledger.plans.at(-1)) {
    return given ?? readPlan(run.backups(ledger.run), ledger);
  }
  if (given.run === ledger.run && given.continues === ledger.plans.at(-1)) return given;
  throw begunWithOther(ledger);
}

/** A rollback that cannot be completed any more gives way: otherwise neither command could continue. */
async function requireHaltedRollback(run: Run, ledger: Ledger): Promise<void> {
  if ((await planRollback(run)).obstacles.length > 0) return;
  throw new PluginError("resource-in-use", `Cannot apply: upgrade ${ledger.run} is being rolled back`, {
    details: "finish that first: upgrade rollback --yes",
  });
}

function begunWithOther({ run }: Ledger): PluginError {
  return new PluginError("resource-in-use", `Cannot apply the plan: upgrade ${run} has begun with another one`, {
    details: "continue that one without --plan, or make a new plan, which continues it: upgrade plan",
  });
}

/** What the rollback has undone is done again. */
async function turnForward(run: Run, ledger: Ledger): Promise<void> {
  const steps = ledger.steps.map((step): LedgerStep => {
    const { name, state, startedAt } = step;
    if (state !== "rolling-back" && state !== "rolled-back") return withoutProblem(step);
    return startedAt === undefined ? { name, state: "pending" } : { name, state: "running", startedAt };
  });
  await run.ledger.write({ ...ledger, phase: "running", steps });
}

/** Its steps have the objects of its own release. */
function refuseOtherRelease({ site }: Run, { facts }: UpgradePlan): void {
  if (facts.target === site.release.version) return;
  const message = `Cannot apply the plan: it is for ${facts.target}, and this tool upgrades to ${site.release.version}`;
  throw new PluginError("version-incompatible", message, {
    details: "make a new plan with this tool, or use the other one",
  });
}

function refuseObstacles({ steps }: UpgradePlan): void {
  const obstacles: readonly Obstacle[] = steps.flatMap((step) => step.obstacles);
  if (obstacles.length === 0) return;
  const messages = obstacles.map(({ message }) => message).join("; ");
  throw new PluginError("resource-in-use", `Cannot apply the plan: ${messages}`, {
    details: [...new Set(obstacles.map(({ remedy }) => remedy))].join("; "),
  });
}

function isComplete(ledger: Ledger | undefined, given: UpgradePlan | undefined): boolean {
  return ledger?.phase === "complete" && (given === undefined || given.run === ledger.run);
}

async function begin(run: Run, plan: UpgradePlan): Promise<void> {
  const digest = planDigest(plan);
  const before = run.ledger.current;
  const earlier = before !== undefined && isUnfinished(before) ? before : undefined;
  if (earlier?.phase === "rolling-back") return turnForward(run, earlier);
  if (earlier?.plans.at(-1) === digest) return;
  const isPending = ({ step }: StepPlan) => earlier === undefined || stateOf(run, step) === "pending";
  const pending = plan.steps.filter(isPending);
  // What a step of this run has begun to change, an earlier plan has backed up.
  const begun = new Set(changedPaths(plan.steps.filter((step) => !isPending(step))));
  const live = await readObjects(run.site.objects, changedPaths(pending));
  const drift = driftSincePlan({ ...plan, steps: pending }, live);
  if (drift.length > 0) throw drifted(drift, NEW_PLAN);
  const backups = run.backups(plan.run);
  await savePlan(backups, plan);
  const saved = new Map([...live].filter(([path]) => !begun.has(path)));
  await backups.save(objectsBackup(digest), encodeObjects(saved));
  run.report({ kind: "backed-up", objects: saved.size });
  const steps = plan.steps.map(({ step: name }): LedgerStep => {
    return earlier?.steps.find((each) => each.name === name) ?? { name, state: "pending" };
  });
  await run.ledger.write({
    run: plan.run,
    phase: "running",
    plans: [...(earlier?.plans ?? []), digest],
    from: plan.facts.version,
    to: plan.facts.target,
    startedAt: earlier?.startedAt ?? run.site.now().toISOString(),
    steps,
    notes: earlier?.notes ?? {},
  });
}

async function carryOut(run: Run, plan: UpgradePlan, { step, plan: stepPlan }: PlannedStep): Promise<void> {
  const { name } = step;
  const state = stateOf(run, name);
  if (state === "done") return run.report({ kind: "done", step: name, outcome: "already done", seconds: 0 });
  const startedAt = run.site.now().getTime();
  const site = stepSite(run, plan, name);
  try {
    // Also of a step that was interrupted: what it has written itself is not drift.
    const remedy = state === "pending" ? NEW_PLAN : ACCEPTING_PLAN;
    await whileTemporary(run, site, () => refuseDriftOf(run, plan, stepPlan, remedy));
    await whileTemporary(run, site, () => act(run, { step, plan: stepPlan }, site));
    const outcome = stateOf(run, name) === "running" ? "changed" : "unchanged";
    const end = run.site.now();
    const change = { state: "done", endedAt: end.toISOString(), problem: undefined, advice: undefined } as const;
    await whileTemporary(run, site, () => writeStep(run, name, change));
    run.report({ kind: "done", step: name, outcome, seconds: (end.getTime() - startedAt) / 1_000 });
  } catch (failure) {
    await recordProblem(run, name, failure);
    throw failure;
  }
}

const NEW_PLAN = "make a new plan, and read it: upgrade plan";
/** A step that has begun is not planned again. */
const ACCEPTING_PLAN =
  "the step has begun, and writes these objects as it was planned: save the edits, and make a new plan to continue: upgrade plan";

async function refuseDriftOf(run: Run, plan: UpgradePlan, step: StepPlan, remedy: string): Promise<void> {
  const live = await readObjects(run.site.objects, changedPaths([step]));
  const begun = new Set(plan.steps.map((each) => each.step).filter((name) => stateOf(run, name) !== "pending"));
  const drift = driftBeforeStep(plan, { step, begun, live });
  if (drift.length > 0) throw drifted(drift, remedy);
}

async function act(run: Run, { step, plan }: PlannedStep, site: StepSite): Promise<void> {
  if ((await step.remaining(site, plan)).length > 0) {
    if (stateOf(run, step.name) === "pending") {
      await writeStep(run, step.name, { state: "running", startedAt: run.site.now().toISOString() });
    }
    await step.act(site, plan);
    const left = await step.remaining(site, plan);
    if (left.length > 0) throw failed("not-ready", `Step "${step.name}" is not done`, left);
  }
  const wrong = (await step.verify?.(site, plan)) ?? [];
  if (wrong.length > 0) throw failed("resource-invalid", `Step "${step.name}" failed verification`, wrong);
}

function failed(kind: "resource-invalid" | "not-ready", message: string, lines: readonly string[]): PluginError {
  return new PluginError(kind, `${message}: ${lines.join("; ")}`, {
    details: "run upgrade apply again to continue, or upgrade rollback to go back",
  });
}

function drifted(lines: readonly string[], details: string): PluginError {
  const message = `Cannot apply the plan: the cluster has changed since it was made: ${lines.join("; ")}`;
  return new PluginError("resource-changed", message, { details });
}
