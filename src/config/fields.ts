/**
 * The types of config values: the valibot schema, and a description of the allowed
 * values for the docs and for the message about an invalid one.
 *
 * Schemas and descriptions are built when needed: every ADD decodes a config, and
 * building all of them would take longer than the rest of the decoding. For the same
 * reason the schemas are `custom`: the first `picklist` takes a tenth of a millisecond.
 */
import * as v from "valibot";
import { isJsonObject } from "../cni/json.ts";
import { parsePrefix } from "../ip/prefix.ts";
import { isLabelName, isLabelValue } from "../model/label-name.ts";
import { isPoolReference } from "./pool-reference.ts";
import { isHttpUrl } from "./urls.ts";

export interface FieldType<Value> {
  readonly kind: "string" | "boolean" | "integer" | "array of string" | "object of string";
  readonly allowed: string;
  readonly schema: () => v.GenericSchema<unknown, Value>;
  /** For a list: which entries are valid, and their description. */
  readonly isEntry?: (text: string) => boolean;
  readonly allowedEntry?: string;
  /** For an object: which of its members are valid. */
  readonly isMember?: (name: string, value: unknown) => boolean;
}

export const text: FieldType<string> = { kind: "string", allowed: "text", schema: v.string };

export const filePath: FieldType<string> = { kind: "string", allowed: "a file path", schema: v.string };

export const flag: FieldType<boolean> = {
  kind: "boolean",
  allowed: "true or false, without quotes",
  schema: v.boolean,
};

/** Booleans that must be written as strings. */
export const flagInQuotes: FieldType<"true" | "false"> = {
  kind: "string",
  allowed: '"true" or "false", as a string in quotes',
  schema: () => v.custom<"true" | "false">((value) => value === "true" || value === "false"),
};

const HTTP_URL = "a URL that starts with http:// or https://";

export const httpUrl: FieldType<string> = matchingText(HTTP_URL, isHttpUrl);

export const httpUrls = listOf(() => HTTP_URL, isHttpUrl);

export function matchingText(allowed: string, matches: (text: string) => boolean): FieldType<string> {
  return { kind: "string", allowed, schema: () => stringThat(matches) };
}

export function wholeNumber(minimum: number, maximum = Number.MAX_SAFE_INTEGER): FieldType<number> {
  return {
    kind: "integer",
    get allowed() {
      const upTo = maximum === Number.MAX_SAFE_INTEGER ? `${minimum} or more` : `from ${minimum} to ${maximum}`;
      return `a whole number, ${upTo}`;
    },
    schema: () =>
      v.custom<number>((value) => Number.isSafeInteger(value) && Number(value) >= minimum && Number(value) <= maximum),
  };
}

export function oneOf<const Values extends readonly string[]>(values: Values): FieldType<Values[number]> {
  return {
    kind: "string",
    get allowed() {
      return list(values);
    },
    schema: () => v.custom<Values[number]>((value) => isOneOf(values, value)),
  };
}

/** As `oneOf`, in any case. */
export function oneOfAnyCase<const Values extends readonly string[]>(values: Values): FieldType<Values[number]> {
  return {
    kind: "string",
    get allowed() {
      return `${list(values)}, in any case`;
    },
    schema: () =>
      v.pipe(
        v.string(),
        v.toUpperCase(),
        v.custom<Values[number]>((value) => isOneOf(values, value)),
      ),
  };
}

export function poolList(family: 4 | 6): FieldType<readonly string[]> {
  return listOf(
    () => `an IPv${family} CIDR or the name of a pool`,
    (text) => isPoolReference(text, family),
  );
}

export const prefixList: FieldType<readonly string[]> = listOf(
  () => 'a CIDR such as "198.51.100.0/24"',
  (text) => parsePrefix(text) !== undefined,
);

/** Labels that selectors can name. */
export const labelMap: FieldType<Readonly<Record<string, string>>> = {
  kind: "object of string",
  allowed:
    'an object of text; names of 1 to 512 letters, digits, "_", ".", "/" or "-", values of at most 253 characters',
  isMember: isLabel,
  schema: () =>
    v.custom<Readonly<Record<string, string>>>((value) => {
      if (!isJsonObject(value)) return false;
      for (const name in value) if (!isLabel(name, value[name])) return false;
      return true;
    }),
};

function isLabel(name: string, value: unknown): boolean {
  return typeof value === "string" && isLabelName(name) && isLabelValue(value);
}

function listOf(allowedEntry: () => string, isEntry: (text: string) => boolean): FieldType<readonly string[]> {
  return {
    kind: "array of string",
    get allowed() {
      return `a list, each entry ${allowedEntry()}`;
    },
    get allowedEntry() {
      return allowedEntry();
    },
    isEntry,
    schema: () => v.custom<readonly string[]>((value) => Array.isArray(value) && areEntries(value, isEntry)),
  };
}

function areEntries(values: readonly unknown[], isEntry: (text: string) => boolean): boolean {
  for (const value of values) if (typeof value !== "string" || !isEntry(value)) return false;
  return true;
}

function stringThat(matches: (text: string) => boolean): v.GenericSchema<unknown, string> {
  return v.custom<string>((value) => typeof value === "string" && matches(value));
}

function isOneOf(values: readonly string[], value: unknown): boolean {
  return typeof value === "string" && values.includes(value);
}

function list(values: readonly string[]): string {
  const quoted = values.map((value) => `"${value}"`);
  if (quoted.length === 1) return `only ${quoted[0]}`;
  return `${quoted.slice(0, -1).join(", ")} or ${quoted.at(-1)}`;
}
