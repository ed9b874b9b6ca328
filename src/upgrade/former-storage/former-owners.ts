/**
 * Which owners of former objects exist. Earlier releases hid owner references in an annotation, where no garbage collector
 * saw them; in the copy they are real, and a copy whose owner does not exist would be deleted at once. Reads only.
 */
import type { ApiObject } from "../../datastore/kube/api.ts";
import { PluginError } from "../../errors.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import { type ApiResource, resourcesIn } from "../owned-objects/api-resources.ts";
import { pathOf } from "../owned-objects/owned-object.ts";
import { hiddenOwners } from "./former-object.ts";

/** Whether an owner of an object in the namespace exists, with this very UID. */
export type OwnerExists = (owner: Fields, namespace: string | undefined) => boolean;

export async function readOwners(
  objects: Pick<ClusterObjects, "read">,
  former: readonly ApiObject[],
): Promise<OwnerExists> {
  const resources = new Map<string, readonly ApiResource[]>();
  const existing = new Map<string, boolean>();
  for (const object of former) {
    const { namespace } = object.metadata;
    for (const owner of readableOwners(object)) {
      const apiVersion = String(owner["apiVersion"]);
      const known = resources.get(apiVersion) ?? (await readResources(objects, apiVersion));
      resources.set(apiVersion, known);
      const key = keyOf(owner, namespace);
      if (!existing.has(key)) existing.set(key, await exists(objects, owner, { namespace, resources: known }));
    }
  }
  return (owner, namespace) => existing.get(keyOf(owner, namespace)) === true;
}

/** Metadata that cannot be read are an obstacle of the conversion. */
function readableOwners(object: ApiObject): readonly Fields[] {
  try {
    return hiddenOwners(object);
  } catch (failure) {
    if (failure instanceof PluginError) return [];
    throw failure;
  }
}

async function readResources(
  objects: Pick<ClusterObjects, "read">,
  apiVersion: string,
): Promise<readonly ApiResource[]> {
  const root = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  return resourcesIn(await objects.read(root), { group: apiVersion.split("/")[0] ?? "", apiVersion, root });
}

/** One that is being deleted would take the copy with it. */
async function exists(
  objects: Pick<ClusterObjects, "read">,
  { kind, name, uid }: Fields,
  { namespace, resources }: { readonly namespace: string | undefined; readonly resources: readonly ApiResource[] },
): Promise<boolean> {
  const resource = resources.find((each) => each.kind === kind);
  if (resource === undefined || (resource.isNamespaced && namespace === undefined)) return false;
  const { apiVersion, plural, isNamespaced } = resource;
  const place = isNamespaced && namespace !== undefined ? { namespace } : {};
  const metadata = (await objects.read(pathOf({ apiVersion, plural, ...place, name: String(name) })))?.["metadata"];
  return isObject(metadata) && metadata["uid"] === uid && metadata["deletionTimestamp"] === undefined;
}

function keyOf({ apiVersion, kind, name, uid }: Fields, namespace = ""): string {
  return JSON.stringify([namespace, apiVersion, kind, name, uid]);
}
