/**
 * From the JSON as given to the object the schema decodes: keys under their
 * exact spelling, what only looks present taken away, unknown keys put aside.
 *
 * Go programs read keys in any case, and write `0`, `""` and `null` for what is
 * absent; configs in the field rely on both.
 */
import { nearestName } from "./nearest-name.ts";
import type { JsonObject } from "./network-config.ts";
import { type AnyObjectSchema, type AnySchema, entriesOf, objectWithin, typeName } from "./schema-shape.ts";

export interface UnknownKey {
  readonly path: readonly string[];
  readonly nearest: string | undefined;
}

export interface WireObject {
  readonly present: JsonObject;
  readonly unknownKeys: readonly UnknownKey[];
}

/** Keys that CNI itself puts into a config; they are not this product's. */
const PROTOCOL_KEYS = ["args", "capabilities", "cniVersions", "dns", "prevResult", "runtimeConfig"];

export function readWireObject(given: JsonObject, schema: AnyObjectSchema): WireObject {
  return readObject(given, schema, []);
}

/** The key of `given` that stands for `name`: spelled exactly, else the only one that differs in case alone. */
export function findKey(given: JsonObject, name: string): string | undefined {
  if (Object.hasOwn(given, name)) return name;
  const wanted = name.toLowerCase();
  const similar = Object.keys(given).filter((key) => key.length === name.length && key.toLowerCase() === wanted);
  return similar.length === 1 ? similar[0] : undefined;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function readObject(given: JsonObject, schema: AnyObjectSchema, path: readonly string[]): WireObject {
  const present: Record<string, unknown> = {};
  const unknownKeys: UnknownKey[] = [];
  const used = new Set<string>();
  for (const [name, field] of Object.entries(entriesOf(schema))) {
    const key = findKey(given, name);
    if (key === undefined) continue;
    used.add(key);
    const value = given[key];
    if (isAbsent(value, field)) continue;

    const nested = objectWithin(field);
    if (nested === undefined || !isObject(value)) {
      present[name] = value;
      continue;
    }
    const inner = readObject(value, nested, [...path, name]);
    present[name] = inner.present;
    unknownKeys.push(...inner.unknownKeys);
  }
  const unused = Object.keys(given).filter((key) => !used.has(key) && !isZero(given[key]) && !isProtocolKey(key, path));
  const names = Object.keys(entriesOf(schema));
  unknownKeys.unshift(...unused.map((key) => ({ path: [...path, key], nearest: nearestName(key, names) })));
  return { present, unknownKeys };
}

function isAbsent(value: unknown, field: AnySchema): boolean {
  if (value === null || value === undefined) return true;
  switch (typeName(field)) {
    case "string":
    case "picklist":
      return value === "";
    case "number":
      return value === 0;
    case "array":
      return Array.isArray(value) && value.length === 0;
    default:
      return false;
  }
}

function isZero(value: unknown): boolean {
  return value === null || value === "" || value === 0 || value === false;
}

function isProtocolKey(key: string, path: readonly string[]): boolean {
  if (path.length > 0) return false;
  const lower = key.toLowerCase();
  return lower.startsWith("cni.dev/") || PROTOCOL_KEYS.some((name) => name.toLowerCase() === lower);
}
