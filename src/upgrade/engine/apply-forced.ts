/**
 * Applies objects of the release by force. Before that, what kubectl wrote without --server-side is taken over, so that fields
 * that the release has no more are removed, and what would contradict a new field is cleared.
 */
import { identity } from "../../identity.ts";
import { isOfKubectl, removedByTakeOver, takeOverPatch } from "../../kube/field-owners.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import type { KubeObject } from "../../release/kube-object.ts";
import { describeObject, objectPath } from "../../release/object-kinds.ts";
import { planApply } from "./dry-run.ts";
import { contradictionPatch } from "./environment-contradictions.ts";
import { ATTEMPTS, isOutdated, patchUnchanged } from "./patch-unchanged.ts";
import type { PlannedChange } from "./step.ts";

const TAKE_OVER = { manager: identity.adminTool, isTaken: isOfKubectl, metadata: "taken" } as const;

/** Those that are not as they should be. */
export async function unapplied(
  objects: ClusterObjects,
  wanted: readonly KubeObject[],
): Promise<readonly KubeObject[]> {
  const found = await Promise.all(wanted.map(async (each) => [each, await objects.read(objectPath(each))] as const));
  return found.filter(([each, live]) => !isApplied(each, live)).map(([each]) => each);
}

export async function applyForced(objects: ClusterObjects, wanted: readonly KubeObject[]): Promise<void> {
  for (const object of wanted) {
    const path = objectPath(object);
    const live = await objects.read(path);
    if (isApplied(object, live)) continue;
    await prepare(objects, path, { object, live });
    await objects.apply(path, object, { force: true });
  }
}

/** As `planApply`; an object that the server refuses before it is prepared is shown without its verdict. */
export async function planForced(
  objects: ClusterObjects,
  wanted: readonly KubeObject[],
): Promise<readonly PlannedChange[]> {
  const changes: PlannedChange[] = [];
  for (const object of wanted) {
    const live = await objects.read(objectPath(object));
    const isPrepared = live === undefined || contradictionPatch(live, object).length === 0;
    const planned: readonly PlannedChange[] = isPrepared
      ? await planApply(objects, [object])
      : [{ action: "update", what: describeObject(object), path: objectPath(object), isUnverified: true }];
    const removed = live === undefined ? [] : removedByTakeOver(live, TAKE_OVER, object);
    changes.push(...withRemovals(planned, object, removed));
  }
  return changes;
}

/** The dry run does not show them: the server removes them only after the fields are taken over. */
function withRemovals(
  planned: readonly PlannedChange[],
  object: KubeObject,
  removed: readonly string[],
): readonly PlannedChange[] {
  if (removed.length === 0) return planned;
  const [change = { action: "update", what: describeObject(object), path: objectPath(object) } as const] = planned;
  const lines = removed.map((field) => `- ${field} (of the former manifest)`);
  return [{ ...change, diff: [change.diff ?? "", ...lines].filter((line) => line !== "").join("\n") }];
}

function isApplied(wanted: KubeObject, live: Fields | undefined): boolean {
  return live !== undefined && isContained(wanted, live) && takeOver(live).length === 0;
}

function takeOver(live: Fields): readonly object[] {
  return takeOverPatch(live, TAKE_OVER);
}

/** Others may write the object at the same time. */
async function prepare(
  objects: ClusterObjects,
  path: string,
  { object, live: first }: { readonly object: KubeObject; readonly live: Fields | undefined },
): Promise<void> {
  let live = first;
  for (let attempt = 1; live !== undefined; attempt++) {
    const owners = takeOver(live);
    // Each patch changes the version that the other one tests.
    const patch = owners.length > 0 ? owners : contradictionPatch(live, object);
    if (patch.length === 0) return;
    try {
      live = await patchUnchanged(objects, path, { live, patch });
    } catch (failure) {
      if (!isOutdated(failure) || attempt >= ATTEMPTS) throw failure;
      live = await objects.read(path);
    }
  }
}

/** Members of lists are compared by their names if they have any, as the API merges them, and otherwise by their positions. */
export function isContained(wanted: unknown, live: unknown): boolean {
  if (isEmpty(wanted)) return true;
  if (Array.isArray(wanted)) return Array.isArray(live) && isListContained(wanted, live);
  if (!isObject(wanted)) return wanted === live;
  return isObject(live) && Object.entries(wanted).every(([name, value]) => isContained(value, live[name]));
}

/** The API does not store what is empty. */
function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isObject(value) && Object.keys(value).length === 0;
}

function isListContained(wanted: readonly unknown[], live: readonly unknown[]): boolean {
  const areNamed = wanted.every((member) => isObject(member) && typeof member["name"] === "string");
  if (!areNamed) {
    return wanted.length === live.length && wanted.every((member, index) => isContained(member, live[index]));
  }
  const named = new Map(live.filter(isObject).map((member) => [member["name"], member]));
  return wanted.filter(isObject).every((member) => isContained(member, named.get(member["name"])));
}
