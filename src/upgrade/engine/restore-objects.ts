/** Puts objects back as they were before an upgrade, for the rollback of steps. */
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { isTakenSince } from "../../kube/field-owners.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import { quoted } from "../../quote.ts";
import { contentHash } from "./object-content.ts";
import type { LiveObjects } from "./observe-objects.ts";
import type { Backups, StepSite } from "./step.ts";

/** The backup that is made before the first write of a run: the objects of all planned changes. */
export const OBJECTS_BACKUP = "objects";

export function encodeObjects(live: LiveObjects): string {
  return JSON.stringify(Object.fromEntries([...live].map(([path, object]) => [path, object ?? null])));
}

/** By path; `null` if there was none. */
export type BackedUpObjects = Readonly<Record<string, Fields | null>>;

export async function readBackedUp(backups: Pick<Backups, "read">): Promise<BackedUpObjects> {
  const text = await backups.read(OBJECTS_BACKUP);
  return text === undefined ? {} : (JSON.parse(text) as BackedUpObjects);
}

/**
 * In the given order. What did not exist is deleted; what is as it was, with its owners, is not written.
 * @public
 */
export async function restoreBackedUp(
  site: Pick<StepSite, "objects" | "backups" | "progress">,
  paths: readonly string[],
): Promise<void> {
  const saved = await readBackedUp(site.backups);
  for (const path of paths) {
    const before = saved[path];
    if (before === undefined) {
      throw new PluginError("resource-missing", `Cannot put ${quoted(path)} back: the backup does not have it`);
    }
    if (await restoreObject(site.objects, path, before)) site.progress(`${describe(before, path)} is as it was`);
  }
}

const ATTEMPTS = 5;

/**
 * Returns whether something was written. Programs of the release, such as the operator, may write the object meanwhile.
 * @public
 */
export async function restoreObject(objects: ClusterObjects, path: string, before: Fields | null): Promise<boolean> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await restoreOnce(objects, path, before);
    } catch (failure) {
      const isLostRace = failure instanceof PluginError && failure.kind === "resource-changed";
      if (!isLostRace || attempt === ATTEMPTS) throw failure;
    }
  }
}

async function restoreOnce(objects: ClusterObjects, path: string, before: Fields | null): Promise<boolean> {
  const live = await objects.read(path);
  if (before === null) return live === undefined ? false : objects.remove(path, withUid(live));
  const isTaken = live !== undefined && isTakenSince(before, live, identity.adminTool);
  if (contentHash(live) === contentHash(before) && !isTaken) return false;
  if (live === undefined) await objects.create(collectionOf(path), asNew(before));
  else await objects.replace(path, asNext(before, live));
  return true;
}

/** Only the object that was read, and not one that somebody has created in its place. */
function withUid(object: Fields): object {
  return { propagationPolicy: "Background", preconditions: { uid: metadataOf(object)["uid"] } };
}

function asNew({ status: _, ...object }: Fields): Fields {
  const { uid: _uid, resourceVersion: _version, managedFields: _managers, ...metadata } = metadataOf(object);
  return { ...object, metadata };
}

/** With its field managers: whoever applied it before finds it as it was. */
function asNext({ status: _, ...object }: Fields, live: Fields): Fields {
  const { uid, resourceVersion } = metadataOf(live);
  return { ...object, metadata: { ...metadataOf(object), uid, resourceVersion } };
}

function metadataOf(object: Fields): Fields {
  const { metadata } = object;
  return isObject(metadata) ? metadata : {};
}

function collectionOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

function describe(object: Fields | null, path: string): string {
  const { namespace, name } = metadataOf(object ?? {});
  if (object === null) return path;
  return `${object["kind"]} ${namespace === undefined ? name : `${namespace}/${name}`}`;
}
