/** Makes objects of the API what they should be: with the version that was read as the precondition, and not if they are. */
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { takeOverPatch } from "../../kube/field-owners.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import type { KubeObject } from "../../operator/kube-object.ts";
import { describeObject, objectPath } from "../../operator/object-kinds.ts";
import { forcedConflicts, planApply } from "../dry-run.ts";
import { isSame } from "../merge/canonical-json.ts";
import { withoutServerFields } from "../merge/server-defaults.ts";
import { contentHash } from "../object-content.ts";
import { objectDiff } from "../object-diff.ts";
import type { PlannedChange } from "../step.ts";
import { composeObject } from "./compose-object.ts";
import type { WantedObject } from "./wanted.ts";
import { fieldsIn } from "./workload.ts";

export async function planWrites(
  objects: ClusterObjects,
  wanted: readonly WantedObject[],
): Promise<readonly PlannedChange[]> {
  const changes: PlannedChange[] = [];
  for (const each of wanted) {
    const path = objectPath(each.object);
    const live = await objects.read(path);
    const planned =
      live === undefined ? await planApply(objects, [each.object]) : await planReplacement(objects, each, live);
    changes.push(...planned);
  }
  return changes;
}

/** The server's own result; its fields of other managers are those that server-side apply would take. */
async function planReplacement(
  objects: ClusterObjects,
  wanted: WantedObject,
  live: Fields,
): Promise<readonly PlannedChange[]> {
  const path = objectPath(wanted.object);
  const { after } = await tryReplacement(objects, wanted, live);
  const diff = objectDiff(live, after);
  if (diff === "") return [];
  const conflicts = await forcedConflicts(objects, plainOf(wanted, composeObject(wanted, live)), live);
  return [
    {
      action: "update",
      what: describeObject(wanted.object),
      path,
      diff,
      ...(conflicts.length === 0 ? {} : { conflicts }),
    },
  ];
}

function plainOf({ object }: WantedObject, composed: Fields): KubeObject {
  return { ...composed, apiVersion: object.apiVersion, kind: object.kind, metadata: object.metadata };
}

/** Those that are not as they should be. */
export async function unwritten(
  objects: ClusterObjects,
  wanted: readonly WantedObject[],
): Promise<readonly WantedObject[]> {
  const found = await Promise.all(wanted.map(async (each) => [each, await isWritten(objects, each)] as const));
  return found.filter(([, is]) => !is).map(([each]) => each);
}

async function isWritten(objects: ClusterObjects, wanted: WantedObject): Promise<boolean> {
  const live = await objects.read(objectPath(wanted.object));
  return live !== undefined && (await isComposed(objects, wanted, live));
}

/** If it seems to differ, the server is asked: it knows its default values best. */
async function isComposed(objects: ClusterObjects, wanted: WantedObject, live: Fields): Promise<boolean> {
  const composed = composeObject(wanted, live);
  const [present, next] = [withoutServerFields(live, composed), withoutServerFields(composed, composed)];
  if (isSame(present, next)) return true;
  const tried = await tryReplacement(objects, wanted, live);
  return contentHash(tried.after) === contentHash(tried.live);
}

const ATTEMPTS = 5;

/** With the object that it was tried on: controllers report into objects all the time, which changes their version. */
async function tryReplacement(objects: ClusterObjects, wanted: WantedObject, first: Fields) {
  const path = objectPath(wanted.object);
  let live = first;
  for (let attempt = 1; ; attempt++) {
    try {
      return { live, after: await objects.replace(path, composeObject(wanted, live), { isDryRun: true }) };
    } catch (failure) {
      if (!isOutdated(failure) || attempt >= ATTEMPTS) throw failure;
      live = (await objects.read(path)) ?? live;
    }
  }
}

function isOutdated(failure: unknown): boolean {
  return failure instanceof PluginError && failure.kind === "resource-changed";
}

/**
 * Returns whether it was written: by server-side apply with forced conflicts. Fails with `resource-changed` if somebody changes
 * its content meanwhile.
 */
export async function writeObject(objects: ClusterObjects, wanted: WantedObject): Promise<boolean> {
  const path = objectPath(wanted.object);
  const first = await objects.read(path);
  if (first === undefined) {
    await objects.apply(path, wanted.object, { force: true });
    return true;
  }
  if (await isComposed(objects, wanted, first)) return false;
  for (let live: Fields | undefined = first; ; live = await objects.read(path)) {
    try {
      await writeComposed(objects, wanted, await takenOver(objects, path, live ?? first));
      return true;
    } catch (failure) {
      if (!isOutdated(failure) || contentHash(await objects.read(path)) !== contentHash(first)) throw failure;
    }
  }
}

const TAKE_OVER = { manager: identity.adminTool, isTaken: () => true, metadata: "taken" } as const;

/** Apply removes fields of the earlier release only if nobody else owns them. Its owners change, and no other content. */
async function takenOver(objects: ClusterObjects, path: string, live: Fields): Promise<Fields> {
  const patch = takeOverPatch(live, TAKE_OVER);
  if (patch.length === 0) return live;
  try {
    return (await objects.patchJson(path, patch)) ?? live;
  } catch (failure) {
    // The test of the version fails.
    if (!(failure instanceof PluginError) || failure.kind !== "resource-invalid") throw failure;
    throw new PluginError("resource-changed", `Cannot take over the fields of "${path}": it has changed`, {
      cause: failure,
    });
  }
}

/** By a replacement where apply would not make the object what it should be: fields without an owner, or entries that are there twice. */
async function writeComposed(objects: ClusterObjects, wanted: WantedObject, live: Fields): Promise<void> {
  const path = objectPath(wanted.object);
  const composed = composeObject(wanted, live);
  const applied = appliedForm(wanted.object, composed);
  const expected = await objects.replace(path, composed, { isDryRun: true });
  const tried = await objects.apply(path, applied, { force: true, isDryRun: true }).catch((failure: unknown) => {
    if (isOutdated(failure)) throw failure;
    return undefined;
  });
  if (contentHash(tried) === contentHash(expected)) await objects.apply(path, applied, { force: true });
  else await objects.replace(path, composed);
}

/** Fields of the server's are not applied, except for the version, which is the precondition. */
function appliedForm({ apiVersion, kind }: KubeObject, { metadata, ...content }: Fields): Fields {
  const {
    uid: _,
    creationTimestamp: _created,
    generation: _generation,
    selfLink: _link,
    ...own
  } = fieldsIn({ metadata }, "metadata");
  return { ...content, apiVersion, kind, metadata: own };
}
