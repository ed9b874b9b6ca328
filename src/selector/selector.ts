/**
 * The selector language as data: the structure of a selector, and which labels it selects.
 *
 * A selector is parsed by `parse.ts` and printed by `format.ts`.
 */
export type Labels = Readonly<Record<string, string>>;

export type Comparison = "==" | "!=" | "contains" | "starts with" | "ends with";

export type Selector =
  | { readonly kind: "all" }
  /** Has a meaning only in a namespace selector, where the policy compiler replaces it; elsewhere it selects like all(). */
  | { readonly kind: "global" }
  | { readonly kind: "has"; readonly label: string }
  | { readonly kind: "compare"; readonly operator: Comparison; readonly label: string; readonly value: string }
  | {
      readonly kind: "member";
      readonly operator: "in" | "not in";
      readonly label: string;
      readonly values: readonly string[];
    }
  | { readonly kind: "not"; readonly operand: Selector }
  | { readonly kind: "and" | "or"; readonly operands: readonly Selector[] };

/** Whether an object with these labels is selected. */
export function selects(selector: Selector, labels: Labels): boolean {
  switch (selector.kind) {
    case "all":
    case "global":
      return true;
    case "has":
      return Object.hasOwn(labels, selector.label);
    case "compare":
      return compares(selector.operator, labelOf(labels, selector.label), selector.value);
    case "member":
      return isMember(selector.values, labelOf(labels, selector.label)) === (selector.operator === "in");
    case "not":
      return !selects(selector.operand, labels);
    case "and":
      return selector.operands.every((operand) => selects(operand, labels));
    case "or":
      return selector.operands.some((operand) => selects(operand, labels));
  }
}

/** The labels whose values matter. */
export function labelNamesIn(selector: Selector): readonly string[] {
  switch (selector.kind) {
    case "all":
    case "global":
      return [];
    case "not":
      return labelNamesIn(selector.operand);
    case "and":
    case "or":
      return selector.operands.flatMap(labelNamesIn);
    default:
      return [selector.label];
  }
}

// Labels come from outside: `constructor` is a label like any other, not an inherited property.
function labelOf(labels: Labels, name: string): string | undefined {
  return Object.hasOwn(labels, name) ? labels[name] : undefined;
}

/** A missing label is different from every value, and matches none. */
function compares(operator: Comparison, actual: string | undefined, value: string): boolean {
  if (actual === undefined) return operator === "!=";
  switch (operator) {
    case "==":
      return actual === value;
    case "!=":
      return actual !== value;
    case "contains":
      return actual.includes(value);
    case "starts with":
      return actual.startsWith(value);
    case "ends with":
      return actual.endsWith(value);
  }
}

function isMember(values: readonly string[], actual: string | undefined): boolean {
  return actual !== undefined && values.includes(actual);
}
