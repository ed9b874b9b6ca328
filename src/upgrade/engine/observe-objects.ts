/** Reads the objects that a plan is about, and what identifies their state. */
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import { contentHash } from "./object-content.ts";
import type { StepPlan } from "./step.ts";
import type { ObservedObject } from "./upgrade-plan.ts";

export type LiveObjects = ReadonlyMap<string, Fields | undefined>;

export function changedPaths(steps: readonly StepPlan[]): readonly string[] {
  const paths = steps.flatMap(({ changes }) => changes.flatMap(({ path }) => (path === undefined ? [] : [path])));
  return [...new Set(paths)];
}

/** A few at a time: a plan may be about thousands of objects. */
const READ_TOGETHER = 8;

export async function readObjects(objects: ClusterObjects, paths: readonly string[]): Promise<LiveObjects> {
  const found = new Map<string, Fields | undefined>();
  for (let start = 0; start < paths.length; start += READ_TOGETHER) {
    const some = paths.slice(start, start + READ_TOGETHER);
    const read = await Promise.all(some.map(async (path) => [path, await objects.read(path)] as const));
    for (const [path, object] of read) found.set(path, object);
  }
  return found;
}

export function observedOf(object: Fields | undefined): ObservedObject {
  const metadata = object?.["metadata"];
  const resourceVersion = isObject(metadata) ? metadata["resourceVersion"] : undefined;
  return {
    hash: contentHash(object),
    managers: managersOf(object),
    ...(typeof resourceVersion === "string" ? { resourceVersion } : {}),
  };
}

export function observedObjects(live: LiveObjects): Readonly<Record<string, ObservedObject>> {
  return Object.fromEntries([...live].map(([path, object]) => [path, observedOf(object)]));
}

/** Without those that only write the status. */
function managersOf(object: Fields | undefined): Readonly<Record<string, string>> {
  const metadata = object?.["metadata"];
  const entries = isObject(metadata) ? metadata["managedFields"] : undefined;
  const managers: Record<string, string> = {};
  for (const entry of Array.isArray(entries) ? entries : []) {
    if (!isObject(entry) || entry["subresource"] === "status") continue;
    const [manager, time] = [String(entry["manager"]), String(entry["time"] ?? "")];
    if ((managers[manager] ?? "") <= time) managers[manager] = time;
  }
  return managers;
}
