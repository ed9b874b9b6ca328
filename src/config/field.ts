/**
 * A field, or a section of fields, of a config object: its meaning, whether it is
 * required, its default, and how it is decoded.
 *
 * Go programs accept keys in any case, and write `0`, `""` and `null` for absent
 * values; existing configs rely on both.
 *
 * The path of a valid config uses loops instead of `filter`, `some` and the like:
 * the engine compiles each of those again in every process.
 */
import * as v from "valibot";
import { isJsonObject, type JsonObject } from "../cni/json.ts";
import { fieldProblem } from "./field-problem.ts";
import type { FieldType } from "./fields.ts";

import type { ConfigPath, ConfigProblem } from "./problem.ts";

/** What was found while decoding. */
export interface Findings {
  readonly problems: ConfigProblem[];
  readonly unknownKeys: ConfigPath[];
  /** Every value that is present, by its full name such as `ipam.type`. */
  readonly present: Map<string, unknown>;
}

export interface Field<Value, Absent> {
  readonly kind: "field";
  readonly meaning: string;
  readonly type: FieldType<Value>;
  readonly required: boolean;
  /** Its value if absent. */
  readonly absent: Absent;
}

export interface Section<Fields extends Entries> {
  readonly kind: "section";
  readonly meaning: string;
  readonly required: boolean;
  readonly fields: Fields;
}

export type Entry = Field<unknown, unknown> | Section<Entries>;
export interface Entries {
  readonly [name: string]: Entry;
}

export type DecodedEntries<Given extends Entries> = {
  readonly [Name in keyof Given]: Given[Name] extends Field<infer Value, infer Absent>
    ? Value | Absent
    : Given[Name] extends Section<infer Fields>
      ? DecodedEntries<Fields>
      : never;
};

export function decodeEntries<Fields extends Entries>(
  fields: Fields,
  given: JsonObject,
  { path, findings }: { readonly path: ConfigPath; readonly findings: Findings },
): DecodedEntries<Fields> {
  const values = underExactNames(fields, given, (key) => findings.unknownKeys.push([...path, key]));
  const decoded: Record<string, unknown> = {};
  for (const name in fields) {
    const entry: Entry | undefined = fields[name];
    if (entry === undefined) continue;
    const value = values[name];
    if (entry.kind === "section") decoded[name] = decodeSection(entry, value, [...path, name], findings);
    // Most fields are absent and optional: no path is built for them.
    else if (value === undefined && !entry.required) decoded[name] = entry.absent;
    else decoded[name] = decodeField(entry, value, [...path, name], findings);
  }
  return decoded as DecodedEntries<Fields>;
}

function decodeSection(section: Section<Entries>, given: unknown, path: ConfigPath, findings: Findings): unknown {
  if (isJsonObject(given)) return decodeEntries(section.fields, given, { path, findings });
  const missing = given === undefined || given === null;
  if (missing && !section.required) return decodeEntries(section.fields, {}, { path, findings });
  findings.problems.push(fieldProblem(path, missing ? undefined : given, section));
  return undefined;
}

/** Adds problems to `findings`; if there are any, the result must not be used. */
function decodeField(field: Field<unknown, unknown>, given: unknown, path: ConfigPath, findings: Findings): unknown {
  if (isAbsent(given, field.type.kind)) {
    if (field.required) findings.problems.push(fieldProblem(path, undefined, field));
    return field.absent;
  }
  findings.present.set(path.join("."), given);
  const parsed = v.safeParse(field.type.schema(), given);
  if (parsed.success) return parsed.output;
  findings.problems.push(...problemsOf(field, given, path));
  return field.absent;
}

/** One problem for the value, or one for each invalid entry of a list or of an object. */
function problemsOf(field: Field<unknown, unknown>, given: unknown, path: ConfigPath): readonly ConfigProblem[] {
  const { isEntry, isMember } = field.type;
  if (isMember !== undefined && isJsonObject(given)) {
    const wrong = Object.keys(given).filter((name) => !isMember(name, given[name]));
    // A name that is not valid is shown as a value: it may be anything.
    return wrong.map((name) =>
      isMember(name, "") ? fieldProblem([...path, name], given[name], field) : fieldProblem(path, name, field),
    );
  }
  if (!Array.isArray(given) || isEntry === undefined) return [fieldProblem(path, given, field)];
  const entries: readonly unknown[] = given;
  return entries.flatMap((entry, index) => {
    const isRight = typeof entry === "string" && isEntry(entry);
    return isRight ? [] : [fieldProblem([...path, index], entry, field)];
  });
}

/** The key of `given` for `name`: the exact spelling, else the only one that differs just in case. */
export function findKey(given: JsonObject, name: string): string | undefined {
  if (Object.hasOwn(given, name)) return name;
  const wanted = name.toLowerCase();
  const similar = Object.keys(given).filter((key) => key.length === name.length && key.toLowerCase() === wanted);
  return similar.length === 1 ? similar[0] : undefined;
}

/** Most keys are spelled exactly, so the search in any case is rare. */
function underExactNames(fields: Entries, given: JsonObject, unknown: (key: string) => void): JsonObject {
  const strangers: string[] = [];
  for (const key in given) if (!Object.hasOwn(fields, key)) strangers.push(key);
  if (strangers.length === 0) return given;

  const values: Record<string, unknown> = { ...given };
  for (const key of strangers) {
    const wanted = key.toLowerCase();
    const name = Object.keys(fields).find((field) => field.toLowerCase() === wanted);
    if (name !== undefined && findKey(given, name) === key) values[name] = given[key];
    else if (!isZero(given[key])) unknown(key);
  }
  return values;
}

function isAbsent(value: unknown, kind: FieldType<unknown>["kind"]): boolean {
  if (value === undefined || value === null) return true;
  switch (kind) {
    case "string":
      return value === "";
    case "integer":
      return value === 0;
    case "array of string":
      return Array.isArray(value) && value.length === 0;
    case "boolean":
    case "object of string":
      return false;
  }
}

function isZero(value: unknown): boolean {
  return value === null || value === "" || value === 0 || value === false;
}
