/** Makes objects of the API what they should be: with the version that was read as the precondition, and not if they are. */
import { PluginError } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { takeOverPatch } from "../../kube/field-owners.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { isUnreadableByApply, statusOfRefusal } from "../../kube/require-ok.ts";
import { isObject } from "../../model/shape.ts";
import type { KubeObject } from "../../release/kube-object.ts";
import { describeObject, objectPath } from "../../release/object-kinds.ts";
import { forcedConflicts, planApply } from "../engine/dry-run.ts";
import { contentHash } from "../engine/object-content.ts";
import { objectDiff } from "../engine/object-diff.ts";
import { ATTEMPTS, isOutdated, patchUnchanged } from "../engine/patch-unchanged.ts";
import type { PlannedChange } from "../engine/step.ts";
import { isSame } from "../merge/canonical-json.ts";
import { withoutServerFields } from "../merge/server-defaults.ts";
import { fieldsIn } from "../object-fields.ts";
import { composeObject, KEPT_FIELDS } from "./compose-object.ts";
import type { WantedObject } from "./wanted.ts";

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

/**
 * Returns what was done, as it is reported; `undefined` if it was as it should be. It is server-side apply with forced conflicts.
 * Fails with `resource-changed` if somebody changes its content meanwhile.
 */
export async function writeObject(objects: ClusterObjects, wanted: WantedObject): Promise<string | undefined> {
  const path = objectPath(wanted.object);
  const first = await objects.read(path);
  if (first === undefined) {
    await objects.apply(path, wanted.object, { force: true });
    return APPLIED;
  }
  if (await isComposed(objects, wanted, first)) return undefined;
  let live = first;
  for (let attempt = 1; ; attempt++) {
    try {
      return await writeComposed(objects, wanted, await takenOver(objects, wanted, live));
    } catch (failure) {
      if (!isOutdated(failure)) throw failure;
      const now = await objects.read(path);
      // A request whose response was lost is sent again, with the version from before.
      if (now !== undefined && (await isComposed(objects, wanted, now))) return APPLIED;
      if (now === undefined || attempt >= ATTEMPTS || contentHash(now) !== contentHash(first)) throw failure;
      live = now;
    }
  }
}

const APPLIED = "is applied";

interface Taken {
  readonly live: Fields;
  /** Why its fields are not this tool's. */
  readonly refusal?: string;
}

/**
 * Apply removes fields of the earlier release only if nobody else owns them. Its owners change, and no other content. Labels and
 * other metadata stay with those who set them, and so does everything if it is only added to.
 */
async function takenOver(objects: ClusterObjects, { object, mode }: WantedObject, live: Fields): Promise<Taken> {
  const patch = takeOverPatch(live, {
    manager: identity.adminTool,
    isTaken: () => mode === "whole",
    metadata: "last-applied",
    left: KEPT_FIELDS,
  });
  if (patch.length === 0) return { live };
  try {
    return { live: (await patchUnchanged(objects, objectPath(object), { live, patch })) ?? live };
  } catch (failure) {
    // Admission policies may refuse the content of the earlier release, and accept that of this one.
    if (!isRefused(failure)) throw failure;
    return { live, refusal: failure.message };
  }
}

/** By a replacement if apply would not make the object what it should be: fields without an owner, or entries that are there twice. */
async function writeComposed(objects: ClusterObjects, wanted: WantedObject, { live, refusal }: Taken): Promise<string> {
  const path = objectPath(wanted.object);
  const composed = composeObject(wanted, live);
  const expected = contentHash(await objects.replace(path, composed, { isDryRun: true }));
  let why = refusal;
  for (const applied of appliedForms(wanted, composed)) {
    const tried = await tryApply(objects, path, applied);
    if (typeof tried === "string") why ??= tried;
    else if (contentHash(tried) === expected) {
      await objects.apply(path, applied, { force: true });
      return APPLIED;
    }
  }
  await objects.replace(path, composed);
  return `is replaced: ${why ?? "server-side apply would leave fields of the earlier release"}`;
}

/** Returns the server's words if it does not accept it. */
async function tryApply(objects: ClusterObjects, path: string, applied: Fields): Promise<Fields | string> {
  try {
    return await objects.apply(path, applied, { force: true, isDryRun: true });
  } catch (failure) {
    if (!isInvalid(failure) && !isUnreadableByApply(failure)) throw failure;
    return failure.message;
  }
}

function isRefused(failure: unknown): failure is PluginError {
  return isInvalid(failure) || [400, 403].includes(statusOfRefusal(failure) ?? 0);
}

function isInvalid(failure: unknown): failure is PluginError {
  return failure instanceof PluginError && failure.kind === "resource-invalid";
}

/**
 * The version that was read is the precondition. Of an object that is added to, the first form has only what is added; lists
 * that the server takes as one value need the second, with what they have.
 */
function appliedForms({ object, mode }: WantedObject, composed: Fields): readonly Fields[] {
  const { resourceVersion } = fieldsIn(composed, "metadata");
  const metadata = { ...object.metadata, resourceVersion };
  const form = { ...object, metadata };
  if (mode === "whole") return [form];
  const { metadata: _, ...content } = object;
  return [form, { ...fieldsIn({ content: placesOf(content, composed) }, "content"), metadata }];
}

/** What is composed at the places that are wanted. */
function placesOf(wanted: unknown, composed: unknown): unknown {
  if (!isObject(wanted) || !isObject(composed)) return composed;
  return Object.fromEntries(Object.entries(wanted).map(([name, value]) => [name, placesOf(value, composed[name])]));
}
