/** Carries out single steps of an upgrade on a real API server, without the engine: planned, acted, checked, and rolled back. */
import { targetRelease } from "../../src/admin/upgrade/target-release.ts";
import type { ClusterObjects, Fields } from "../../src/kube/objects.ts";
import type { Facts } from "../../src/upgrade/engine/facts.ts";
import type { UpgradeOptions } from "../../src/upgrade/engine/options.ts";
import { OBJECTS_BACKUP } from "../../src/upgrade/engine/restore-objects.ts";
import type { Helm, Step, StepPlan, StepSite } from "../../src/upgrade/engine/step.ts";
import { VERSION } from "../../src/version.ts";

const OPTIONS: UpgradeOptions = {
  automaticHostEndpoints: false,
  acceptDefaultAllow: false,
  overwriteLabels: false,
  reviewed: false,
  onConflict: "fail",
  ignoredGroups: [],
  stallSeconds: 30,
};

export interface StepRun {
  readonly site: StepSite;
  readonly lines: readonly string[];
  /** `undefined` if the cluster does not need it. */
  plan(step: Step): Promise<StepPlan | undefined>;
  /** Plans it, backs up what it changes, and carries it out; throws if something remains. */
  carryOut(step: Step): Promise<StepPlan>;
  rollback(step: Step, plan: StepPlan): Promise<void>;
}

export interface StepRunPlan {
  readonly objects: ClusterObjects;
  readonly facts: Facts;
  readonly helm?: Helm | undefined;
  readonly options?: Partial<UpgradeOptions>;
  readonly more?: Partial<Pick<StepSite, "openDatastore" | "now">>;
}

export function stepRun({ objects, facts, helm, options, more }: StepRunPlan): StepRun {
  const backups = new Map<string, string>();
  let notes: Fields = {};
  const lines: string[] = [];
  const site: StepSite = {
    objects,
    facts,
    options: { ...OPTIONS, ...options },
    release: targetRelease(VERSION),
    openDatastore: () => Promise.reject(new Error("the step does not need it")),
    signal: new AbortController().signal,
    backups: {
      save: async (name, text) => void (backups.has(name) || backups.set(name, text)),
      read: async (name) => backups.get(name),
    },
    stateOf: () => "done",
    notes: {
      read: async () => notes,
      write: async (next) => {
        notes = next;
      },
    },
    progress: (line) => lines.push(line),
    now: () => new Date(),
    begunAt: new Date(),
    wait: (milliseconds) => Bun.sleep(Math.min(milliseconds, 100)),
    helm,
    ...more,
  };
  const saved: Record<string, Fields | null> = {};
  return {
    site,
    lines,
    plan: (step) => step.plan(site),
    async carryOut(step) {
      const plan = await step.plan(site);
      if (plan === undefined) throw new Error(`${step.name} has nothing to do`);
      for (const { path } of plan.changes) {
        if (path !== undefined && !(path in saved)) saved[path] = (await objects.read(path)) ?? null;
      }
      backups.set(OBJECTS_BACKUP, JSON.stringify(saved));
      await step.act(site, plan);
      const remaining = await step.remaining(site, plan);
      if (remaining.length > 0) throw new Error(`${step.name} is not done: ${remaining.join("; ")}`);
      return plan;
    },
    rollback: async (step, plan) => step.rollback?.(site, plan),
  };
}
