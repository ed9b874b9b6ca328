/** Applies the objects of an installation, and says what each of them was. */

import type { ApplyOptions, ClusterObjects, Fields } from "../../kube/objects.ts";
import { isObject } from "../../model/shape.ts";
import type { KubeObject } from "../../release/kube-object.ts";
import { describeObject, objectPath } from "../../release/object-kinds.ts";
import type { Clock, Terminal } from "../main/context.ts";

interface Applying extends ApplyOptions {
  readonly context: Terminal;
}

/** One after another: a later one may need an earlier one, and large ones sent at the same time hold each other up. */
export async function applyObjects(
  objects: ClusterObjects,
  wanted: readonly KubeObject[],
  applying: Applying,
): Promise<void> {
  for (const object of wanted) await applyObject(objects, object, applying);
}

async function applyObject(
  objects: ClusterObjects,
  object: KubeObject,
  { context, ...options }: Applying,
): Promise<void> {
  const path = objectPath(object);
  const before = versionOf(await objects.read(path));
  const after = versionOf(await objects.apply(path, object, options));
  const outcome = before === undefined ? "created" : before === after ? "unchanged" : "configured";
  context.stdout(`${describeObject(object)} ${outcome}\n`);
}

export function versionOf(object: Fields | undefined): string | undefined {
  const metadata = object?.["metadata"];
  return isObject(metadata) ? String(metadata["resourceVersion"]) : undefined;
}

const POLL_MILLISECONDS = 500;
const POLLS = 120;

/** Waits until the API serves these kinds. Returns the names of those that it does not serve in time. */
export async function untilEstablished(
  objects: ClusterObjects,
  definitions: readonly KubeObject[],
  context: Clock,
): Promise<readonly string[]> {
  let missing = definitions;
  for (let poll = 0; poll < POLLS; poll += 1) {
    const found = await Promise.all(missing.map(async (each) => [each, await objects.read(objectPath(each))] as const));
    missing = found.filter(([, object]) => !isEstablished(object)).map(([each]) => each);
    if (missing.length === 0) break;
    await context.wait(POLL_MILLISECONDS);
  }
  return missing.map(({ metadata }) => metadata.name);
}

function isEstablished(object: Fields | undefined): boolean {
  const status = object?.["status"];
  const conditions = isObject(status) ? status["conditions"] : undefined;
  const list: readonly unknown[] = Array.isArray(conditions) ? conditions : [];
  return list.some((each) => isObject(each) && each["type"] === "Established" && each["status"] === "True");
}
