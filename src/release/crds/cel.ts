/** Parts of CEL rules. Pure. */
import type { RefusedFields } from "../../model/bgp-fields.ts";
import type { CelRule, StructuralSchema } from "./crd-schema.ts";

/** Of an address or a CIDR. */
export const LONGEST_PREFIX = "0000:0000:0000:0000:0000:0000:255.255.255.255/128".length;

/** A text with rules about it. */
export function text(maxLength: number, rules: readonly CelRule[]): StructuralSchema {
  return { type: "string", maxLength, ...(rules.length === 0 ? {} : { "x-kubernetes-validations": rules }) };
}

/**
 * A message with values in it, as a CEL expression. Each value is an expression of type string.
 * Not `+`: the API server cannot bound the length of `string(x)`, and refuses to join it to a text.
 */
export function formatted(message: string, values: readonly string[]): string {
  return `'${message}'.format([${values.join(", ")}])`;
}

/** A literal without escape sequences. */
export function celText(pattern: string): string {
  return `r'''${pattern}'''`;
}

/** A protocol by its number or its name. CEL compares values of one type only. */
export function isProtocolOf(value: string, numbers: readonly number[], names: readonly string[]): string {
  return `(type(${value}) == int ? ${value} in [${numbers.join(", ")}] : ${value} in [${spellings(names)
    .map((name) => `'${name}'`)
    .join(", ")}])`;
}

/** As people write it, in upper and in lower case. */
export function spellings(names: readonly string[]): readonly string[] {
  return [...new Set(names.flatMap((name) => [name, name.toUpperCase(), name.toLowerCase()]))];
}

/** Of fields that this release refuses. */
export function refusals(fields: RefusedFields): readonly CelRule[] {
  return Object.entries(fields).map(([field, message]) => ({
    rule: `!has(self.${field})`,
    fieldPath: `.${field}`,
    message,
  }));
}
