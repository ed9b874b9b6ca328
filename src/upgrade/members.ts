/** Members of objects of the API at a path of names, read leniently. Pure. */
import type { Fields } from "../kube/objects.ts";
import { isObject } from "../model/shape.ts";

function memberAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, name) => (isObject(inner) ? inner[name] : undefined), value);
}

export function fieldsAt(value: unknown, ...path: readonly string[]): Fields {
  const found = memberAt(value, path);
  return isObject(found) ? found : {};
}

export function listAt(value: unknown, ...path: readonly string[]): readonly unknown[] {
  const found = memberAt(value, path);
  return Array.isArray(found) ? found : [];
}

export function textAt(value: unknown, ...path: readonly string[]): string {
  const found = memberAt(value, path);
  return typeof found === "string" ? found : "";
}

export function numberAt(value: unknown, absent: number, ...path: readonly string[]): number {
  const found = memberAt(value, path);
  return typeof found === "number" ? found : absent;
}

export function textsAt(value: unknown, ...path: readonly string[]): Readonly<Record<string, string>> {
  const entries = Object.entries(fieldsAt(value, ...path));
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === "string"));
}
