/** Reads fields of objects of the API leniently: what is absent, or of another type, is empty. Pure. */
import type { Fields } from "../kube/objects.ts";
import { isObject, objectsIn } from "../model/shape.ts";
import { memberAt } from "../release/live-object.ts";

export function fieldsIn(value: unknown, ...path: readonly string[]): Fields {
  const found = memberAt(value, ...path);
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

/** As `numberAt` of a live object, but `absent` if there is none. */
export function numberAt(value: unknown, absent: number, ...path: readonly string[]): number {
  const found = memberAt(value, ...path);
  return typeof found === "number" ? found : absent;
}
