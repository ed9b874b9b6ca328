/**
 * A step of an upgrade. Every step is planned by reading only, can be carried out again after it was interrupted anywhere,
 * and knows how to find out whether it is done.
 */

import type { Datastore } from "../../datastore/datastore.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import type { Facts, Obstacle } from "./facts.ts";
import type { StepState } from "./ledger.ts";
import type { UpgradeOptions } from "./options.ts";
import type { TargetRelease } from "./target-release.ts";

export interface Step {
  /** `owner-references`: its name in plan, ledger and options. */
  readonly name: string;
  readonly title: string;
  /** The rule of the spec's section "Versioning" that it serves. */
  readonly rule: number;
  readonly why: string;
  /** A later step, or the use of the cluster, undoes it as intended: it is not observed again once it is done. */
  readonly isTemporary?: true;
  /** After it the whole upgrade cannot go back. */
  readonly isPointOfNoReturn?: true;
  /** Reads only. `undefined`: this cluster does not need it. Throws if it cannot tell. */
  plan(site: PlanningSite): Promise<StepPlan | undefined>;
  /** What is still to be done; nothing: the step is done. Reads only. */
  remaining(site: StepSite, plan: StepPlan): Promise<readonly string[]>;
  /** Carries it out from wherever it was interrupted. Writes with preconditions; what is done already it does not write again. */
  act(site: StepSite, plan: StepPlan): Promise<void>;
  /** What is wrong after it is done; stops the upgrade. Reads only. */
  verify?(site: StepSite, plan: StepPlan): Promise<readonly string[]>;
  /** Why the whole upgrade cannot go back any more: asked before the first step goes back. Reads only. */
  rollbackObstacles?(site: StepSite, plan: StepPlan): Promise<readonly Obstacle[]>;
  /** Goes back; absent if there is nothing to go back from. May be interrupted and repeated as well. */
  rollback?(site: StepSite, plan: StepPlan): Promise<void>;
}

/** What a person runs again to continue. */
export type RunCommand = "upgrade apply" | "upgrade rollback";

/** Data only: it is saved in the plan's file and in the ledger. */
export interface StepPlan {
  readonly step: string;
  readonly changes: readonly PlannedChange[];
  /** What has to be decided, usually by a flag, before the step may run: the plan is shown, but not carried out. */
  readonly obstacles: readonly Obstacle[];
  /** What a person should know, such as fields that have no meaning any more. */
  readonly notes: readonly string[];
  /** What `rollback` cannot bring back. */
  readonly cannotBeUndone?: string;
  readonly estimatedSeconds: number;
  /** What the step needs to carry it out. */
  readonly data: Fields;
}

export interface PlannedChange {
  readonly action: "create" | "update" | "delete" | "restart" | "run";
  /** `DaemonSet kube-system/vendor-node` */
  readonly what: string;
  /** Of the object in the API: backed up before the first write of all steps, and watched for drift. */
  readonly path?: string;
  /** Lines of a diff of the server's own result. */
  readonly diff?: string;
  /** Fields of other managers that are taken. */
  readonly conflicts?: readonly FieldConflict[];
  /** Its kind or namespace comes with an earlier step: the server could not try it. */
  readonly isUnverified?: true;
  /** The step sets one field of it, and again whenever others change it: what they write is not drift once it has begun. */
  readonly isGuarded?: true;
}

export interface FieldConflict {
  /** `.spec.replicas` */
  readonly field: string;
  readonly manager: string;
  /** What the other manager has set, as JSON. */
  readonly value: string;
}

export interface PlanningSite {
  readonly objects: ClusterObjects;
  readonly facts: Facts;
  readonly options: UpgradeOptions;
  readonly release: TargetRelease;
  /** The datastore that the cluster has now (etcd) or will have after the upgrade (`vendor.org/v3`). */
  openDatastore(): Promise<Datastore>;
  readonly signal: AbortSignal;
}

export interface StepSite extends PlanningSite {
  readonly backups: Backups;
  /** What the step has to remember across a crash, besides the plan. */
  readonly notes: StepNotes;
  /** Of another step of the plan; `undefined`: the plan does not have it. */
  stateOf(step: string): StepState | undefined;
  /** One line for the user. */
  progress(line: string): void;
  now(): Date;
  /** When this run began to carry steps out, by the same clock. */
  readonly begunAt: Date;
  wait(milliseconds: number): Promise<void>;
  readonly helm: Helm | undefined;
}

/** Kept in the cluster and beside the plan. The first text under a name stays. */
export interface Backups {
  save(name: string, text: string): Promise<void>;
  read(name: string): Promise<string | undefined>;
}

export interface StepNotes {
  read(): Promise<Fields>;
  /** Replaces them as a whole; no write if they are the same. */
  write(notes: Fields): Promise<void>;
}

/** Runs the real Helm; `undefined` where a step needs it and there is none: it then names the command and waits. */
export type Helm = (
  args: readonly string[],
  stdin?: string,
) => Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }>;
