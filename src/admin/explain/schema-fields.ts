/** The fields of a kind, from its schema. Pure. */
import * as v from "valibot";
import type { PublicKind } from "../../model/kinds.ts";
import { metadataSchema } from "../../model/metadata.ts";
import { isObject } from "../../model/shape.ts";

export interface Field {
  readonly name: string;
  /** `string`, `[]string`, `map[string]string`, `Object` … */
  readonly type: string;
  readonly isRequired: boolean;
  /** `undefined` if there is none. */
  readonly defaultValue: unknown;
  /** The only allowed values; empty if any value of the type is. */
  readonly allowed: readonly string[];
  /** Of an object, or of the members of a list of objects. */
  readonly fields: readonly Field[];
}

export function fieldsOfKind({ codec }: PublicKind): readonly Field[] {
  return fieldsOf(
    v.object({ apiVersion: v.string(), kind: v.string(), metadata: metadataSchema, spec: codec.specSchema }),
  );
}

function fieldsOf(schema: unknown): readonly Field[] {
  const { inner } = unwrapped(schema);
  const { entries, item } = inner;
  if (isObject(entries)) return Object.entries(entries).map(([name, member]) => fieldOf(name, member));
  return item === undefined ? [] : fieldsOf(item);
}

function fieldOf(name: string, schema: unknown): Field {
  const { inner, isRequired, defaultValue } = unwrapped(schema);
  return { name, type: typeOf(inner), isRequired, defaultValue, allowed: allowedOf(inner), fields: fieldsOf(inner) };
}

type Members = Readonly<Record<string, unknown>>;

/** Without what makes the schema optional. */
function unwrapped(schema: unknown): { inner: Members; isRequired: boolean; defaultValue: unknown } {
  if (!isObject(schema)) return { inner: {}, isRequired: false, defaultValue: undefined };
  if (schema["wrapped"] === undefined) return { inner: schema, isRequired: true, defaultValue: undefined };
  return { inner: unwrapped(schema["wrapped"]).inner, isRequired: false, defaultValue: schema["default"] };
}

function typeOf(schema: unknown): string {
  const { inner } = unwrapped(schema);
  const { type, item, value, options } = inner;
  switch (type) {
    case "object":
    case "loose_object":
      return "Object";
    case "array":
      return `[]${typeOf(item)}`;
    case "record":
      return `map[string]${typeOf(value)}`;
    case "picklist":
      return Array.isArray(options) && typeof options[0] === "number" ? "integer" : "string";
    case "union":
      return Array.isArray(options) ? [...new Set(options.map(typeOf))].join(" or ") : "";
    case "number":
      return isInteger(inner) ? "integer" : "number";
    case "unknown":
      return "any";
    default:
      return String(type);
  }
}

function isInteger({ pipe }: Members): boolean {
  return Array.isArray(pipe) && pipe.some((step) => isObject(step) && step["type"] === "integer");
}

function allowedOf(schema: Members): readonly string[] {
  const { type, options, item } = schema;
  if (type === "array" && isObject(item)) return allowedOf(item);
  return type === "picklist" && Array.isArray(options) ? options.map(String) : [];
}
