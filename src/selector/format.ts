/**
 * The canonical text of a selector: the same for selectors that differ only in
 * spaces, quotes, redundant parentheses or negations, or the order of a set.
 * Policy hashes it to recognize equal selectors.
 */

import { quoted } from "../quote.ts";
import type { Selector } from "./selector.ts";

export function formatSelector(selector: Selector): string {
  return print(simplify(selector));
}

/** Flattens nested chains of the same kind, and removes chains of one or no operand and double negations. */
function simplify(selector: Selector): Selector {
  if (selector.kind === "not") {
    const operand = simplify(selector.operand);
    return operand.kind === "not" ? operand.operand : { kind: "not", operand };
  }
  if (selector.kind !== "and" && selector.kind !== "or") return selector;

  const { kind } = selector;
  const operands = selector.operands.map(simplify).flatMap((inner) => (inner.kind === kind ? inner.operands : [inner]));
  const [only, ...others] = operands;
  // Without operands, "and" selects everything and "or" nothing.
  if (only === undefined) return kind === "and" ? { kind: "all" } : { kind: "not", operand: { kind: "all" } };
  return others.length === 0 ? only : { kind, operands };
}

function print(selector: Selector): string {
  switch (selector.kind) {
    case "all":
      return "all()";
    case "global":
      return "global()";
    case "has":
      return `has(${selector.label})`;
    case "compare":
      return `${selector.label} ${selector.operator} ${quote(selector.value)}`;
    case "member":
      return `${selector.label} ${selector.operator} {${printSet(selector.values)}}`;
    case "not":
      return `!${printInside(selector.operand, ["and", "or"])}`;
    case "and":
      return selector.operands.map((operand) => printInside(operand, ["or"])).join(" && ");
    case "or":
      return selector.operands.map(print).join(" || ");
  }
}

/** In parentheses if it binds less tightly than the expression around it. */
function printInside(selector: Selector, looser: readonly Selector["kind"][]): string {
  return looser.includes(selector.kind) ? `(${print(selector)})` : print(selector);
}

function printSet(values: readonly string[]): string {
  return [...new Set(values)].sort().map(quote).join(", ");
}

/** Strings have no escape sequences: the quote that the value does not contain is used. */
function quote(value: string): string {
  if (!value.includes('"')) return `"${value}"`;
  if (!value.includes("'")) return `'${value}'`;
  throw new RangeError(`Cannot print a selector: the value contains both kinds of quotes: ${quoted(value)}`);
}
