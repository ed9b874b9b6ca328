/**
 * The list of who may choose addresses, in a cluster: the operator and an upgrade enter who uses the annotations already, before
 * the policy counts for the first time.
 */
import type { ClusterObjects } from "../kube/objects.ts";
import { addressListObject, CHOSEN_ADDRESSES } from "../release/admission/address-policies.ts";
import {
  entriesOf,
  type ListEntries,
  type ListKey,
  listWith,
  USERS_OF_ANNOTATIONS,
  type User,
  usersIn,
  withoutListed,
} from "../release/admission/annotation-users.ts";
import { bindingObject } from "../release/admission/policy-objects.ts";
import { textAt } from "../release/live-object.ts";
import { groupPath, objectPath } from "../release/object-kinds.ts";

const LIST_PATH = objectPath(addressListObject());

/**
 * Those that the list does not have yet, of annotations that count today (`keys`). None if the policy counts already: then the
 * list alone decides. Reads only.
 */
export async function missingEntries(objects: ClusterObjects, keys: readonly ListKey[]): Promise<ListEntries> {
  if (keys.length === 0) return {};
  if ((await objects.read(objectPath(bindingObject(CHOSEN_ADDRESSES)))) !== undefined) return {};
  const users: User[] = [];
  for (const { group, resource, metadata } of USERS_OF_ANNOTATIONS) {
    const path = `${groupPath(group === "" ? "v1" : `${group}/v1`)}/${resource}`;
    const content = resource === "pods" ? "metadata" : "whole";
    users.push(...(await objects.collect(path, { content, keep: (object) => usersIn(object, metadata, keys) })));
  }
  return withoutListed(entriesOf(users), await objects.read(LIST_PATH));
}

/** Adds lines; what the list has stays as it is. Fails with `resource-changed` if somebody changes the list meanwhile. */
export async function addEntries(objects: ClusterObjects, entries: ListEntries): Promise<void> {
  const live =
    (await objects.read(LIST_PATH)) ?? (await objects.apply(LIST_PATH, addressListObject(), { force: true }));
  const missing = withoutListed(entries, live);
  if (Object.keys(missing).length === 0) return;
  const resourceVersion = textAt(live, "metadata", "resourceVersion");
  await objects.patch(LIST_PATH, { metadata: { resourceVersion }, data: listWith(live, missing) });
}
