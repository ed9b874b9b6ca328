/** An object of the orchestrator's API as it is, read leniently: others write it too. Pure. */
import { isObject } from "../model/shape.ts";
import type { KubeObject } from "./kube-object.ts";
import { FIELD_MANAGER, IGNORE_ANNOTATION } from "./operator-names.ts";

export interface LiveObject extends KubeObject {
  readonly metadata: KubeObject["metadata"] & {
    readonly uid: string;
    readonly resourceVersion: string;
    readonly generation?: number;
    readonly deletionTimestamp?: string;
    readonly finalizers?: readonly string[];
    readonly managedFields?: readonly { readonly manager?: string; readonly operation?: string }[];
  };
}

/** An administrator keeps it as it is. */
export function isIgnored({ metadata }: LiveObject): boolean {
  return metadata.annotations?.[IGNORE_ANNOTATION] === "true";
}

export function isBeingDeleted({ metadata }: LiveObject): boolean {
  return metadata.deletionTimestamp !== undefined;
}

/** The operator has applied it: a label alone may be a copy. */
export function isApplied({ metadata }: LiveObject): boolean {
  return (metadata.managedFields ?? []).some(
    ({ manager, operation }) => manager === FIELD_MANAGER && operation === "Apply",
  );
}

/** A member at a path of names; `undefined` if there is none. */
export function memberAt(value: unknown, ...path: readonly string[]): unknown {
  let found = value;
  for (const name of path) {
    if (!isObject(found)) return undefined;
    found = found[name];
  }
  return found;
}

export function textAt(value: unknown, ...path: readonly string[]): string {
  const found = memberAt(value, ...path);
  return typeof found === "string" ? found : "";
}

export function numberAt(value: unknown, ...path: readonly string[]): number {
  const found = memberAt(value, ...path);
  return typeof found === "number" ? found : 0;
}

export function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = memberAt(value, ...path);
  return Array.isArray(found) ? found : [];
}

/** The texts of an object of texts: labels, a selector, the data of a ConfigMap. */
export function textsAt(value: unknown, ...path: readonly string[]): Readonly<Record<string, string>> {
  const found = memberAt(value, ...path);
  if (!isObject(found)) return {};
  return Object.fromEntries(
    Object.entries(found).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}
