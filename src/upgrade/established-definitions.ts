/** Waits until the API serves the kinds of definitions that were applied. */
import { PluginError } from "../errors.ts";
import type { ClusterObjects, Fields } from "../kube/objects.ts";
import { isObject } from "../model/shape.ts";
import type { KubeObject } from "../release/kube-object.ts";
import { listAt } from "../release/live-object.ts";
import { objectPath } from "../release/object-kinds.ts";
import type { StepSite } from "./engine/step.ts";

const POLL_MILLISECONDS = 500;
const POLLS = 120;

export async function untilEstablished(
  site: Pick<StepSite, "objects" | "wait">,
  definitions: readonly KubeObject[],
): Promise<void> {
  let missing: readonly string[] = [];
  for (let poll = 0; poll < POLLS; poll += 1) {
    missing = await unestablished(site.objects, definitions);
    if (missing.length === 0) return;
    await site.wait(POLL_MILLISECONDS);
  }
  throw new PluginError("api-unavailable", `Cannot go on: the API does not serve ${missing.join(", ")}`, {
    details: `kubectl describe crd ${missing[0]}`,
  });
}

/** Names of those that the API does not serve. */
export async function unestablished(
  objects: ClusterObjects,
  definitions: readonly KubeObject[],
): Promise<readonly string[]> {
  const found = await Promise.all(
    definitions.map(async (each) => [each.metadata.name, await objects.read(objectPath(each))] as const),
  );
  return found.filter(([, live]) => !isEstablished(live)).map(([name]) => name);
}

function isEstablished(definition: Fields | undefined): boolean {
  return listAt(definition, "status", "conditions").some(
    (each) => isObject(each) && each["type"] === "Established" && each["status"] === "True",
  );
}
