/** Reads fields of objects of the API leniently: what is absent, or of another type, is empty. Pure. */
import type { Fields } from "../kube/objects.ts";
import { isObject, objectsIn } from "../model/shape.ts";

function memberAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, name) => (isObject(inner) ? inner[name] : undefined), value);
}

export function fieldsIn(value: unknown, ...path: readonly string[]): Fields {
  const found = memberAt(value, path);
  return isObject(found) ? found : {};
}

export function itemsIn(value: unknown, name: string): readonly Fields[] {
  return objectsIn(isObject(value) ? value[name] : undefined);
}

export function textIn(value: unknown, name: string): string | undefined {
  const text = isObject(value) ? value[name] : undefined;
  return typeof text === "string" ? text : undefined;
}

export function named(list: readonly Fields[], name: string): Fields | undefined {
  return list.find((each) => each["name"] === name);
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
  const entries = Object.entries(fieldsIn(value, ...path));
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === "string"));
}
