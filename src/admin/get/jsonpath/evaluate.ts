/** Finds the values that a JSONPath names. What does not exist is not an error, as in kubectl: there are then no values. */
import { isObject } from "../../../model/shape.ts";
import type { Filter, JsonPath, Operand, Operator, Step } from "./template.ts";

/** Where a path may start. */
export interface Scope {
  readonly document: unknown;
  readonly current: unknown;
}

export function valuesAt(path: JsonPath, scope: Scope): readonly unknown[] {
  return path.steps.reduce<readonly unknown[]>(
    (values, step) => values.flatMap((value) => valuesOf(value, step, scope)),
    [path.from === "document" ? scope.document : scope.current],
  );
}

function valuesOf(value: unknown, step: Step, scope: Scope): readonly unknown[] {
  switch (step.kind) {
    case "field":
      return isObject(value) && Object.hasOwn(value, step.name) ? present([value[step.name]]) : [];
    case "every":
      return membersOf(value);
    case "index":
      return Array.isArray(value) ? present([value.at(step.index)]) : [];
    case "slice":
      return Array.isArray(value) ? value.slice(step.start, step.end) : [];
    case "filter":
      return membersOf(value).filter((member) => isWanted(step.filter, { ...scope, current: member }));
  }
}

function membersOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  return isObject(value) ? present(Object.values(value)) : [];
}

function present(values: readonly unknown[]): readonly unknown[] {
  return values.filter((value) => value !== undefined);
}

function isWanted(filter: Filter, scope: Scope): boolean {
  if (filter.kind === "exists") return valuesAt(filter.path, scope).length > 0;
  const [left] = operandValues(filter.left, scope);
  const [right] = operandValues(filter.right, scope);
  return compares(filter.operator, left, right);
}

function operandValues(operand: Operand, scope: Scope): readonly unknown[] {
  return operand.kind === "literal" ? [operand.value] : valuesAt(operand.path, scope);
}

/** Values of different types are different, and neither is less than the other. */
function compares(operator: Operator, left: unknown, right: unknown): boolean {
  if (operator === "==") return left === right;
  if (operator === "!=") return left !== undefined && left !== right;
  const order = orderOf(left, right);
  if (order === undefined) return false;
  switch (operator) {
    case "<":
      return order < 0;
    case "<=":
      return order <= 0;
    case ">":
      return order > 0;
    case ">=":
      return order >= 0;
  }
}

function orderOf(left: unknown, right: unknown): number | undefined {
  if (typeof left === "number" && typeof right === "number") return left - right;
  if (typeof left === "string" && typeof right === "string") return left < right ? -1 : left > right ? 1 : 0;
  return undefined;
}
