/**
 * Decodes values with a schema, and reports problems that a person can act on.
 *
 * One schema has two uses: stored records are decoded tolerantly (fields of
 * other releases are ignored), what a user applies is also checked for unknown
 * fields.
 */
import * as v from "valibot";
import { shortName } from "../quote.ts";
import { nearestName } from "./nearest-name.ts";
import type { Checked, Problem } from "./problem.ts";

/** Decodes with the schema; unknown fields are ignored, `null` counts as absent. */
export function decodeShape<Schema extends v.GenericSchema>(
  schema: Schema,
  value: unknown,
): Checked<v.InferOutput<Schema>> {
  const result = v.safeParse(schema, value);
  return result.success
    ? { ok: true, value: result.output }
    : { ok: false, problems: result.issues.map(describeIssue) };
}

/** A stored `null` means the same as an absent field, as in every Go program that writes these objects. */
export function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isObject(value)) return value;
  const kept: Record<string, unknown> = {};
  for (const name in value) if (value[name] !== null) define(kept, name, withoutNulls(value[name]));
  return kept;
}

// Assigning to `__proto__` would set the object's prototype instead of a member.
function define(target: Record<string, unknown>, name: string, value: unknown): void {
  if (name === "__proto__") Object.defineProperty(target, name, { value, enumerable: true });
  else target[name] = value;
}

/**
 * Finds every field of the value that is not in the schema, and suggests a similar name. Also reports a list in
 * place of an object: for the schema, its members are only unknown fields.
 */
export function findUnknownFields(schema: unknown, value: unknown, path = ""): readonly Problem[] {
  if (hasWrapped(schema)) return findUnknownFields(schema.wrapped, value, path);
  if (wantsObject(schema) && Array.isArray(value)) {
    return [{ path, value, message: "has the wrong type; use an object" }];
  }
  if (hasItem(schema) && Array.isArray(value)) {
    return value.flatMap((member, index) => findUnknownFields(schema.item, member, `${path}[${index}]`));
  }
  if (!hasEntries(schema) || !isObject(value)) return [];

  const known = Object.keys(schema.entries);
  return Object.entries(value).flatMap(([name, member]) => {
    const place = joinPath(path, name);
    const inner = Object.hasOwn(schema.entries, name) ? schema.entries[name] : undefined;
    return inner === undefined ? [unknownField(place, name, known)] : findUnknownFields(inner, member, place);
  });
}

/** Returns `after` with those fields of `before` that are not in the schema: the caller cannot have meant to remove them. */
export function keepUnknownFields(schema: unknown, before: unknown, after: unknown): unknown {
  if (hasWrapped(schema)) return keepUnknownFields(schema.wrapped, before, after);
  if (!hasEntries(schema) || !isObject(before) || !isObject(after)) return after;

  const kept: Record<string, unknown> = { ...after };
  for (const [name, member] of Object.entries(before)) {
    const isKnown = Object.hasOwn(schema.entries, name);
    if (Object.hasOwn(after, name)) define(kept, name, keepUnknownFields(schema.entries[name], member, after[name]));
    else if (!isKnown) define(kept, name, member);
  }
  return kept;
}

function unknownField(path: string, name: string, known: readonly string[]): Problem {
  const nearest = nearestName(name, known);
  const advice = nearest ? `did you mean "${nearest}"?` : `use ${known.join(", ")}`;
  return { path, value: undefined, message: `is not a known field; ${advice}` };
}

function describeIssue(issue: v.BaseIssue<unknown>): Problem {
  const path = (issue.path ?? []).reduce<string>((sum, item) => joinPath(sum, item.key), "");
  return { path, value: issue.input, message: messageOf(issue) };
}

function messageOf(issue: v.BaseIssue<unknown>): string {
  if (issue.kind !== "schema") return issue.message;
  if (issue.received === "undefined") return "is required";
  if (issue.type === "picklist" || issue.type === "literal") {
    return `is not allowed; use ${(issue.expected ?? "").replace(/^\(|\)$/g, "").replaceAll(" | ", ", ")}`;
  }
  const wanted = {
    Object: "an object",
    Array: "a list",
    string: "a string",
    number: "a number",
    boolean: "true or false",
  };
  const expected = (issue.expected ?? "").replace(/^\(|\)$/g, "").split(" | ");
  const words = expected.map((type) => (Object.hasOwn(wanted, type) ? wanted[type as keyof typeof wanted] : type));
  return `has the wrong type; use ${words.join(" or ")}`;
}

function joinPath(path: string, key: unknown): string {
  if (typeof key === "number") return `${path}[${key}]`;
  const name = shortName(String(key));
  return path === "" ? name : `${path}.${name}`;
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What else is in the list is left out; what is not a list has none. */
export function objectsIn(list: unknown): readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(list) ? list.filter(isObject) : [];
}

export function textsIn(list: unknown): readonly string[] {
  return Array.isArray(list) ? list.filter((each) => typeof each === "string") : [];
}

function hasWrapped(schema: unknown): schema is { readonly wrapped: unknown } {
  return isObject(schema) && "wrapped" in schema;
}

function hasItem(schema: unknown): schema is { readonly item: unknown } {
  return isObject(schema) && "item" in schema;
}

function wantsObject(schema: unknown): boolean {
  return isObject(schema) && ["object", "loose_object", "record"].includes(String(schema["type"]));
}

function hasEntries(schema: unknown): schema is { readonly entries: Readonly<Record<string, unknown>> } {
  return isObject(schema) && isObject(schema["entries"]);
}
