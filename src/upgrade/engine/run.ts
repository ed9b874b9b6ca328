/**
 * The engine of an upgrade: the steps of a plan, each with the site that it works at.
 *
 *   make-plan.ts ──> apply.ts ──────────────────────────────> verify.ts
 *   step.plan()      step.remaining(), act(), verify()         step.verify()
 *                       └──> rollback.ts
 *                            step.rollback(), last step first
 *
 * A step is a folder of `../steps`: `step.ts` carries these functions out, the files beside it are its parts. The engine gets the
 * steps as a list (`../steps.ts`) and knows none of them.
 */
import type { Datastore } from "../../datastore/datastore.ts";
import { PluginError } from "../../errors.ts";
import { isTemporary } from "../../kube/failure.ts";
import type { Fields } from "../../kube/objects.ts";
import { isServerFailure } from "../../kube/require-ok.ts";
import type { Facts } from "./facts.ts";
import type { Ledger, LedgerStep, LedgerStore } from "./ledger.ts";
import { type BackedUpObjects, OBJECTS_BACKUP } from "./restore-objects.ts";
import type { HeldLease } from "./run-lease.ts";
import type { Backups, Step, StepNotes, StepPlan, StepSite } from "./step.ts";
import { decodePlan, encodePlan, planDigest, type UpgradePlan } from "./upgrade-plan.ts";

export interface Run {
  readonly steps: readonly Step[];
  readonly site: Pick<StepSite, "objects" | "release" | "signal" | "now" | "begunAt" | "wait" | "helm">;
  readonly ledger: LedgerStore;
  readonly lease: Pick<HeldLease, "whenHeld" | "isHeldWithin">;
  openDatastore(kind: Facts["datastore"]): Promise<Datastore>;
  backups(run: string): Backups;
  report(event: RunEvent): void;
}

/** What happens, for the user. */
export type RunEvent =
  | { readonly kind: "backed-up"; readonly objects: number }
  | {
      readonly kind: "begun";
      /** As it was planned; absent in a rollback. */
      readonly estimatedSeconds?: number;
      readonly step: string;
      readonly title: string;
      readonly number: number;
      readonly of: number;
    }
  | { readonly kind: "progress"; readonly step: string; readonly line: string }
  | { readonly kind: "done"; readonly step: string; readonly outcome: StepOutcome; readonly seconds: number };

/** "unchanged": nothing was left to do. "kept": a rollback does not change it. */
export type StepOutcome = "changed" | "unchanged" | "already done" | "rolled back" | "kept";

export interface PlannedStep {
  readonly step: Step;
  readonly plan: StepPlan;
}

/** The steps of a plan. The plan may be of another release, which had others. */
export function plannedSteps(steps: readonly Step[], plan: UpgradePlan): readonly PlannedStep[] {
  return plan.steps.map((each) => {
    const step = steps.find(({ name }) => name === each.step);
    if (step !== undefined) return { step, plan: each };
    throw new PluginError("config-invalid", `Cannot use the plan: this tool has no step "${each.step}"`, {
      details: `use the tool of release ${plan.facts.target}, which made it`,
    });
  });
}

export function stepSite(run: Run, plan: UpgradePlan, step: string): StepSite {
  return {
    ...run.site,
    openDatastore: () => run.openDatastore(plan.facts.datastore),
    facts: plan.facts,
    options: plan.options,
    backups: runBackups(run, plan.run),
    notes: notesOf(run.ledger, step),
    stateOf: (name) => (plan.steps.some((each) => each.step === name) ? stateOf(run, name) : undefined),
    progress: (line) => run.report({ kind: "progress", step, line }),
  };
}

const RETRY_MILLISECONDS = [1_000, 2_000, 4_000, 8_000];
/** After so long without a failure, the next one is the first again: a rolling update takes many minutes. */
const CALM_MILLISECONDS = 60_000;

/**
 * A step may be carried out, and undone, again after it was interrupted anywhere: an API that is away stops nothing. If it is
 * away for longer than these attempts take, the Lease cannot be renewed either: then the next one begins when it is.
 */
export async function whileTemporary<T>({ lease }: Run, site: StepSite, work: () => Promise<T>): Promise<T> {
  for (let failures = 0; ; failures += 1) {
    const begun = site.now().getTime();
    try {
      return await work();
    } catch (failure) {
      if (site.signal.aborted || !(failure instanceof PluginError) || !mayPass(failure)) throw failure;
      if (site.now().getTime() - begun >= CALM_MILLISECONDS) failures = 0;
      const milliseconds = RETRY_MILLISECONDS[failures];
      if (milliseconds === undefined) throw failure;
      site.progress(`Trying again in ${milliseconds / 1_000} s: ${failure.message}`);
      await site.wait(milliseconds);
      if ((await lease.whenHeld()) === "again") failures = -1;
    }
  }
}

function mayPass(failure: PluginError): boolean {
  return isTemporary(failure) || isServerFailure(failure);
}

/** With the objects of all plans of the run under one name: each as it was before the first step that changes it. */
function runBackups(run: Run, name: string): Backups {
  const backups = run.backups(name);
  return {
    save: (backup, text) => backups.save(backup, text),
    async read(backup) {
      if (backup !== OBJECTS_BACKUP) return backups.read(backup);
      const merged: Record<string, unknown> = {};
      for (const digest of run.ledger.current?.plans ?? []) {
        Object.assign(merged, JSON.parse((await backups.read(objectsBackup(digest))) ?? "{}") as BackedUpObjects);
      }
      return JSON.stringify(merged);
    },
  };
}

export function objectsBackup(digest: string): string {
  return `${OBJECTS_BACKUP}-${digest}`;
}

function planBackup(digest: string): string {
  return `plan-${digest}`;
}

export async function savePlan(backups: Backups, plan: UpgradePlan): Promise<void> {
  await backups.save(planBackup(planDigest(plan)), encodePlan(plan));
}

/** The plan that a run follows. */
export async function readPlan(backups: Pick<Backups, "read">, { plans, run }: Ledger): Promise<UpgradePlan> {
  const name = planBackup(plans.at(-1) ?? "");
  const text = await backups.read(name);
  if (text !== undefined) return decodePlan(text, name);
  throw new PluginError("resource-missing", `Cannot continue upgrade ${run}: its plan is not in the cluster any more`, {
    details: "put the Secrets of its backups back from the local copy",
  });
}

function notesOf(ledger: LedgerStore, step: string): StepNotes {
  return {
    read: async () => ledger.current?.notes[step] ?? {},
    async write(notes: Fields) {
      const { current } = ledger;
      if (current === undefined) throw new PluginError("internal", "Cannot remember anything before a run has begun");
      await ledger.write({ ...current, notes: { ...current.notes, [step]: notes } });
    },
  };
}

/** The present ledger; a run has begun. */
export function requireLedger({ ledger }: Run): Ledger {
  if (ledger.current !== undefined) return ledger.current;
  throw new PluginError("resource-missing", "There is no upgrade in this cluster");
}

/** `undefined` removes a member. */
export type StepChange = { readonly [Member in Exclude<keyof LedgerStep, "name">]?: LedgerStep[Member] | undefined };

export async function writeStep(run: Run, name: string, change: StepChange): Promise<void> {
  const ledger = requireLedger(run);
  const steps = ledger.steps.map((each) => (each.name === name ? changedStep(each, change) : each));
  await run.ledger.write({ ...ledger, steps });
}

function changedStep(step: LedgerStep, change: StepChange): LedgerStep {
  const { name, state = step.state, startedAt, endedAt, problem, advice } = { ...step, ...change };
  return {
    name,
    state,
    ...(startedAt === undefined ? {} : { startedAt }),
    ...(endedAt === undefined ? {} : { endedAt }),
    ...(problem === undefined ? {} : { problem }),
    ...(advice === undefined ? {} : { advice }),
  };
}

const RECORD_MILLISECONDS = 10_000;

/** For `upgrade status`. The failure itself is more important than that it could not be recorded: it is told soon. */
export async function recordProblem(run: Run, step: string, failure: unknown): Promise<void> {
  if (!(failure instanceof PluginError) || run.site.signal.aborted) return;
  if (!(await run.lease.isHeldWithin(RECORD_MILLISECONDS))) return;
  const { message, details } = failure;
  await writeStep(run, step, { problem: message, advice: details || undefined }).catch(() => {});
}

export function stateOf(run: Run, name: string): LedgerStep["state"] {
  return run.ledger.current?.steps.find((each) => each.name === name)?.state ?? "pending";
}
