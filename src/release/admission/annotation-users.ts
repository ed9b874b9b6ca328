/**
 * Who uses the restricted annotations already: their namespaces are entered into the list before the policy counts for the
 * first time, so that their pods can be created again. Pure; `src/upkeep/address-list.ts` reads and writes.
 */

import { identity } from "../../identity.ts";
import type { Fields } from "../../kube/objects.ts";
import { CHOSEN_ANNOTATIONS } from "../../model/recorded-annotations.ts";
import type { KubeObject } from "../kube-object.ts";
import { memberAt, textAt, textsAt } from "../live-object.ts";
import { isAddressList } from "./address-policies.ts";

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

/** Users of annotations that count today (`keys`) in one object; `metadata`: the way to the metadata of its pods. */
export function usersIn(object: Fields, metadata: readonly string[], keys: readonly ListKey[]): readonly User[] {
  const namespace = textAt(object, "metadata", "namespace");
  const annotations = memberAt(object, ...metadata, "annotations");
  const chosen = keys.filter((key) => memberAt(annotations, `${identity.annotationPrefix}${key}`) !== undefined);
  return chosen.map((key) => ({ namespace, key }));
}

/** The texts of the list with these lines added. */
export function listWith(live: Fields | undefined, missing: ListEntries): Readonly<Record<string, string>> {
  const data = textsAt(live, "data");
  return Object.fromEntries(
    Object.entries(missing).map(([key, lines]) => {
      const former = data[key] ?? "";
      return [key, `${former}${former === "" || former.endsWith("\n") ? "" : "\n"}${lines.join("\n")}\n`];
    }),
  );
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

/** A namespace whose pods have the annotation. */
export interface User {
  readonly namespace: string;
  readonly key: ListKey;
}

export function entriesOf(users: readonly User[]): ListEntries {
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
