/**
 * Who uses the restricted annotations already: their namespaces are entered into the list before the policy counts for the
 * first time, so that their pods can be created again.
 */

import { identity } from "../../identity.ts";
import type { ClusterObjects, Fields } from "../../kube/objects.ts";
import { CHOSEN_ANNOTATIONS } from "../../model/recorded-annotations.ts";
import type { KubeObject } from "../kube-object.ts";
import { memberAt, textAt, textsAt } from "../live-object.ts";
import { groupPath, objectPath } from "../object-kinds.ts";
import { addressListObject, CHOSEN_ADDRESSES, isAddressList } from "./address-policies.ts";
import { bindingObject } from "./policy-objects.ts";

export type ListKey = (typeof CHOSEN_ANNOTATIONS)[number];

/** Lines by the keys of the list. */
export type ListEntries = Readonly<Record<string, readonly string[]>>;

/** Pods, and what makes pods later: a Deployment may have none at the moment. `metadata`: the way to the metadata of its pods. */
export const USERS_OF_ANNOTATIONS = [
  { group: "", resource: "pods", metadata: ["metadata"] },
  { group: "apps", resource: "deployments", metadata: ["spec", "template", "metadata"] },
  { group: "apps", resource: "statefulsets", metadata: ["spec", "template", "metadata"] },
  { group: "apps", resource: "daemonsets", metadata: ["spec", "template", "metadata"] },
  { group: "batch", resource: "cronjobs", metadata: ["spec", "jobTemplate", "spec", "template", "metadata"] },
] as const;

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
    const keep = (object: Fields) => {
      const namespace = textAt(object, "metadata", "namespace");
      const annotations = memberAt(object, ...metadata, "annotations");
      const chosen = keys.filter((key) => memberAt(annotations, `${identity.annotationPrefix}${key}`) !== undefined);
      return chosen.map((key): User => ({ namespace, key }));
    };
    users.push(...(await objects.collect(path, { content, keep })));
  }
  return withoutListed(entriesOf(users), await objects.read(LIST_PATH));
}

/** Adds lines; what the list has stays as it is. Fails with `resource-changed` if somebody changes the list meanwhile. */
export async function enter(objects: ClusterObjects, entries: ListEntries): Promise<void> {
  const live =
    (await objects.read(LIST_PATH)) ?? (await objects.apply(LIST_PATH, addressListObject(), { force: true }));
  const missing = withoutListed(entries, live);
  if (Object.keys(missing).length === 0) return;
  const data = textsAt(live, "data");
  const added = Object.entries(missing).map(([key, lines]) => {
    const former = data[key] ?? "";
    return [key, `${former}${former === "" || former.endsWith("\n") ? "" : "\n"}${lines.join("\n")}\n`] as const;
  });
  const resourceVersion = textAt(live, "metadata", "resourceVersion");
  await objects.patch(LIST_PATH, { metadata: { resourceVersion }, data: Object.fromEntries(added) });
}

/** Of `entries`, those that the list does not have. */
export function withoutListed(entries: ListEntries, list: Fields | undefined): ListEntries {
  const data = textsAt(list, "data");
  const missing = Object.entries(entries).map(([key, lines]) => {
    const listed = linesIn(data[key] ?? "");
    return [key, lines.filter((line) => !listed.includes(line))] as const;
  });
  return Object.fromEntries(missing.filter(([, lines]) => lines.length > 0));
}

/** It permits somebody. */
export function isListWithEntries(object: KubeObject): boolean {
  return isAddressList(object) && Object.values(textsAt(object, "data")).some((text) => linesIn(text).length > 0);
}

interface User {
  readonly namespace: string;
  readonly key: ListKey;
}

function entriesOf(users: readonly User[]): ListEntries {
  const entries = CHOSEN_ANNOTATIONS.map((name) => {
    const namespaces = users.filter(({ key }) => key === name).map(({ namespace }) => namespace);
    return [name, [...new Set(namespaces)].toSorted()] as const;
  });
  return Object.fromEntries(entries.filter(([, namespaces]) => namespaces.length > 0));
}

function linesIn(text: string): readonly string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
}
