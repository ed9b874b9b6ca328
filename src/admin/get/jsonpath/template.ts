/**
 * The supported part of kubectl's JSONPath templates, as data.
 *
 *   text {.metadata.name} {range .items[*]} … {end} {"\n"}
 *
 * `parse.ts` reads it, `evaluate.ts` finds values, `print.ts` prints them.
 */
export type Template = readonly TemplatePart[];

export type TemplatePart =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "path"; readonly path: JsonPath }
  | { readonly kind: "range"; readonly path: JsonPath; readonly body: Template };

export interface JsonPath {
  /** `$` is the whole document; a path without it starts at the current element of a range. */
  readonly from: "document" | "current";
  readonly steps: readonly Step[];
}

export type Step =
  | { readonly kind: "field"; readonly name: string }
  | { readonly kind: "every" }
  /** Negative: from the end. */
  | { readonly kind: "index"; readonly index: number }
  | { readonly kind: "slice"; readonly start: number | undefined; readonly end: number | undefined }
  | { readonly kind: "filter"; readonly filter: Filter };

export type Filter =
  | { readonly kind: "exists"; readonly path: JsonPath }
  | { readonly kind: "compare"; readonly operator: Operator; readonly left: Operand; readonly right: Operand };

export const OPERATORS = ["==", "!=", "<=", ">=", "<", ">"] as const;
export type Operator = (typeof OPERATORS)[number];

export type Operand =
  | { readonly kind: "path"; readonly path: JsonPath }
  | { readonly kind: "literal"; readonly value: string | number | boolean };

/** The part of a template that is not supported, or not JSONPath at all. */
export class TemplateError extends Error {
  override readonly name = "TemplateError";
}
