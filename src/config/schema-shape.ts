/** Looks into a schema: what a field is called, holds, allows and defaults to. */
import * as v from "valibot";

export type AnySchema = v.GenericSchema;
export type AnyObjectSchema = AnySchema & { readonly type: "object" };

/** Without the wrapping that makes a field optional. */
function unwrapped(field: AnySchema): AnySchema {
  return "wrapped" in field ? (field.wrapped as AnySchema) : field;
}

/** `string`, `number`, `boolean`, `picklist`, `array` or `object`. */
export function typeName(field: AnySchema): string {
  return unwrapped(field).type;
}

export function objectWithin(field: AnySchema): AnyObjectSchema | undefined {
  const schema = unwrapped(field);
  return isObjectSchema(schema) ? schema : undefined;
}

export function entriesOf(schema: AnyObjectSchema): Readonly<Record<string, AnySchema>> {
  return "entries" in schema ? (schema.entries as Record<string, AnySchema>) : {};
}

/** The field at a path of the schema; `undefined` where the path leaves it. */
export function fieldAt(schema: AnyObjectSchema, path: readonly (string | number)[]): AnySchema | undefined {
  let field: AnySchema = schema;
  for (const step of path) {
    const object = objectWithin(field);
    if (object === undefined) return field;
    const next = entriesOf(object)[String(step)];
    if (next === undefined) return undefined;
    field = next;
  }
  return field;
}

export function meaningOf(field: AnySchema): string {
  return v.getDescription(unwrapped(field)) ?? "";
}

export function allowedOf(field: AnySchema): string {
  const allowed = v.getMetadata(unwrapped(field))["allowed"];
  return typeof allowed === "string" ? allowed : "";
}

export function isRequired(field: AnySchema): boolean {
  return !("wrapped" in field);
}

export function defaultOf(field: AnySchema): unknown {
  return "default" in field ? field.default : undefined;
}

function isObjectSchema(schema: AnySchema): schema is AnyObjectSchema {
  return schema.type === "object";
}
