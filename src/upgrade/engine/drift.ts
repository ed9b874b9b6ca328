/** Whether the objects of a plan are still as they were when it was made. Pure. */

import { identity } from "../../identity.ts";
import { ABSENT } from "./object-content.ts";
import { type LiveObjects, observedOf } from "./observe-objects.ts";
import type { PlannedChange, StepPlan } from "./step.ts";
import type { ObservedObject, UpgradePlan } from "./upgrade-plan.ts";

/** Carry out what the steps of an upgrade begin: their changes do not make the rest of the plan wrong. */
const OWN_MANAGERS: ReadonlySet<string> = new Set([
  // Writers of the datastore in the orchestrator's API.
  identity.product,
  identity.operator,
  identity.nodeAgent,
  identity.controllers,
  "kube-controller-manager",
  "kube-apiserver",
]);

const HELM = "helm";
/** The one that runs Helm, or waits until somebody has run it. */
const CHART_STEP = "chart";

/** Before the first write: everything must be as it was planned. One line for each object that differs. */
export function driftSincePlan(plan: UpgradePlan, live: LiveObjects): readonly string[] {
  const lines = plan.steps.flatMap((step) => step.changes.flatMap((change) => describeDrift(plan, change, live)));
  return [...new Set(lines)];
}

export interface StepMoment {
  readonly step: StepPlan;
  /** The names of the steps that have begun. */
  readonly begun: ReadonlySet<string>;
  readonly live: LiveObjects;
}

/** Before a step begins or continues, when others are done: changes by the upgrade itself are expected. */
export function driftBeforeStep(plan: UpgradePlan, moment: StepMoment): readonly string[] {
  const isGuarded = (change: PlannedChange) => change.isGuarded === true && moment.begun.has(moment.step.step);
  const isOther = (change: PlannedChange) => {
    return change.path !== undefined && !isGuarded(change) && !isOwnChange(plan, change, moment);
  };
  return moment.step.changes.filter(isOther).flatMap((change) => describeDrift(plan, change, moment.live));
}

function describeDrift({ observed }: UpgradePlan, { path, what }: PlannedChange, live: LiveObjects): readonly string[] {
  const planned = path === undefined ? undefined : observed[path];
  if (path === undefined || planned === undefined) return [];
  const now = observedOf(live.get(path));
  // Of an object that nobody has written since, a new definition of its kind may show other fields.
  const isSameWrite = now.resourceVersion !== undefined && now.resourceVersion === planned.resourceVersion;
  if (isSameWrite || now.hash === planned.hash) return [];
  if (now.hash === ABSENT) return [`${what} has been deleted`];
  const writers = writersSince(planned.managers, now.managers);
  const by = writers.length === 0 ? "" : ` by ${writers.join(", ")}`;
  return [planned.hash === ABSENT ? `${what} has been created${by}` : `${what} has been changed${by}`];
}

function isOwnChange(
  { observed, steps }: UpgradePlan,
  { path = "" }: PlannedChange,
  { begun, live }: StepMoment,
): boolean {
  const now = observedOf(live.get(path));
  if (now.hash === ABSENT) return isToBeDeleted(steps, path);
  const begunSteps = steps.filter(({ step }) => begun.has(step));
  const isOwn = (writer: string) => {
    // People use these two as well.
    if (writer === identity.adminTool)
      return begunSteps.some(({ changes }) => changes.some((each) => each.path === path));
    if (writer === HELM) return begun.has(CHART_STEP);
    return OWN_MANAGERS.has(writer);
  };
  const writers = writersSince(observed[path]?.managers ?? {}, now.managers);
  return writers.length > 0 && writers.every(isOwn);
}

function isToBeDeleted(steps: readonly StepPlan[], path: string | undefined): boolean {
  return steps.some(({ changes }) => changes.some((each) => each.path === path && each.action === "delete"));
}

/** The times of the API are in seconds: after a second write within one of them, it is whoever wrote last. */
function writersSince(before: Managers, now: Managers): readonly string[] {
  const writers = Object.keys(now).filter((manager) => before[manager] !== now[manager]);
  if (writers.length > 0) return writers;
  const last = Object.values(now).sort().at(-1);
  return Object.keys(now).filter((manager) => now[manager] === last);
}

type Managers = ObservedObject["managers"];
