/** Whether the objects of a plan are still as they were when it was made. Pure. */

import { identity } from "../identity.ts";
import type { Fields } from "../kube/objects.ts";
import { ABSENT } from "./object-content.ts";
import { type LiveObjects, observedOf } from "./observe-objects.ts";
import type { PlannedChange, StepPlan } from "./step.ts";
import type { ObservedObject, UpgradePlan } from "./upgrade-plan.ts";

/** Carry out what the steps of an upgrade begin: their changes do not make the rest of the plan wrong. */
const OWN_MANAGERS: ReadonlySet<string> = new Set([
  identity.adminTool,
  // Writers of the datastore in the orchestrator's API.
  identity.product,
  identity.operator,
  identity.nodeAgent,
  identity.controllers,
  "helm",
  "kube-controller-manager",
  "kube-apiserver",
]);

/** Before the first write: everything must be as it was planned. One line for each object that differs. */
export function driftSincePlan(plan: UpgradePlan, live: LiveObjects): readonly string[] {
  const lines = plan.steps.flatMap((step) => step.changes.flatMap((change) => describeDrift(plan, change, live)));
  return [...new Set(lines)];
}

/** Before a step begins, when others are done: changes by the upgrade itself are expected. */
export function driftBeforeStep(plan: UpgradePlan, step: StepPlan, live: LiveObjects): readonly string[] {
  const isOther = (change: PlannedChange) =>
    change.path !== undefined && !isOwnChange(plan, change, live.get(change.path));
  return step.changes.filter(isOther).flatMap((change) => describeDrift(plan, change, live));
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

function isOwnChange({ observed, steps }: UpgradePlan, change: PlannedChange, object: Fields | undefined): boolean {
  const planned = observed[change.path ?? ""];
  const now = observedOf(object);
  if (now.hash === ABSENT) return isToBeDeleted(steps, change.path);
  const writers = writersSince(planned?.managers ?? {}, now.managers);
  return writers.length > 0 && writers.every((writer) => OWN_MANAGERS.has(writer));
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
