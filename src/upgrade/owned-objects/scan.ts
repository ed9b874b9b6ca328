/** Searches every resource of the cluster for owner references to the product's group. Reads only. */
import type { ClusterObjects } from "../../kube/objects.ts";
import { type ApiResource, BrokenApi, readApiResources } from "./api-resources.ts";
import { type FoundObject, ownedObjectsIn } from "./owned-object.ts";

const LISTS_AT_ONCE = 4;

/** Throws a BrokenApi if an API that is not ignored cannot be asked: what it stores would be missed. */
export async function findOwnedObjects(
  objects: ClusterObjects,
  ignoredGroups: readonly string[],
): Promise<readonly FoundObject[]> {
  const waiting = [...(await readApiResources(objects, ignoredGroups))];
  const found: FoundObject[] = [];
  const work = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      found.push(...(await findIn(objects, next)));
    }
  };
  await Promise.all(Array.from({ length: LISTS_AT_ONCE }, work));
  return inOrder(found);
}

async function findIn(objects: ClusterObjects, resource: ApiResource): Promise<readonly FoundObject[]> {
  try {
    return await objects.collect(`${resource.root}/${resource.plural}`, {
      content: "metadata",
      keep: (object) => ownedObjectsIn(resource, [object]),
    });
  } catch (failure) {
    const reason = failure instanceof Error ? failure.message : String(failure);
    throw resource.group === "" ? failure : new BrokenApi(resource.group, reason);
  }
}

/** Some kinds are served by two groups: each object once. In the order of their names, whatever was read first. */
function inOrder(found: readonly FoundObject[]): readonly FoundObject[] {
  const sorted = [...found].sort((one, other) => compare(sortKey(one), sortKey(other)));
  return [...new Map(sorted.map((each) => [`${each.kind} ${each.uid}`, each])).values()];
}

function sortKey({ kind, namespace = "", name, apiVersion }: FoundObject): string {
  return [kind, namespace, name, apiVersion].join(" ");
}

function compare(one: string, other: string): number {
  return one < other ? -1 : Number(one > other);
}
