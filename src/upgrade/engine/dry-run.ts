/** What applying objects would change, as the server itself says: dry runs of server-side apply. */
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { type ApplyConflict, conflictsIn } from "../../kube/require-ok.ts";
import type { KubeObject } from "../../release/kube-object.ts";
import { describeObject, objectPath } from "../../release/object-kinds.ts";
import { valueAt } from "./field-path.ts";
import { objectDiff } from "./object-diff.ts";
import type { FieldConflict, PlannedChange } from "./step.ts";

/** In the same order, without those that the server would not change. */
export async function planApply(
  objects: ClusterObjects,
  wanted: readonly KubeObject[],
): Promise<readonly PlannedChange[]> {
  const changes: PlannedChange[] = [];
  for (const object of wanted) {
    const change = await planObject(objects, object);
    if (change !== undefined) changes.push(change);
  }
  return changes;
}

async function planObject(objects: ClusterObjects, object: KubeObject): Promise<PlannedChange | undefined> {
  const path = objectPath(object);
  const live = await objects.read(path);
  const action = live === undefined ? "create" : "update";
  const change = { action, what: describeObject(object), path } as const;
  const result = await dryRun(objects, path, object);
  if (result === undefined) return { ...change, diff: objectDiff(live, object), isUnverified: true };
  const diff = objectDiff(live, result.object);
  if (diff === "") return undefined;
  const conflicts = result.conflicts.filter(isOfOther).map((each) => conflictOf(each, live));
  return { ...change, diff, ...(conflicts.length === 0 ? {} : { conflicts }) };
}

interface DryRun {
  readonly object: Fields;
  readonly conflicts: readonly ApplyConflict[];
}

/** First without force: only then the server names the managers. `undefined`: its kind or its namespace does not exist yet. */
async function dryRun(objects: ClusterObjects, path: string, object: KubeObject): Promise<DryRun | undefined> {
  try {
    return { object: await objects.apply(path, object, { force: false, isDryRun: true }), conflicts: [] };
  } catch (failure) {
    if (failure instanceof PluginError && failure.kind === "resource-missing") return undefined;
    const conflicts = conflictsIn(failure);
    if (conflicts.length === 0) throw failure;
    return { object: await objects.apply(path, object, { force: true, isDryRun: true }), conflicts };
  }
}

/** What this tool has set by other means than server-side apply conflicts with its own apply. */
function isOfOther({ manager }: ApplyConflict): boolean {
  return manager !== identity.adminTool;
}

/** The fields of other managers that server-side apply would take by force. */
export async function forcedConflicts(
  objects: ClusterObjects,
  object: KubeObject,
  live: Fields,
): Promise<readonly FieldConflict[]> {
  try {
    await objects.apply(objectPath(object), object, { force: false, isDryRun: true });
    return [];
  } catch (failure) {
    return conflictsIn(failure)
      .filter(isOfOther)
      .map((each) => conflictOf(each, live));
  }
}

/** `value`: of Secrets only that there is one. */
function conflictOf({ field, manager }: ApplyConflict, live: Fields | undefined): FieldConflict {
  const value = live?.["kind"] === "Secret" ? "(hidden)" : valueAt(live, field);
  return { field, manager, value: JSON.stringify(value) ?? "null" };
}
