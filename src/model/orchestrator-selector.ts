/** Label selectors of the orchestrator as terms of our selectors. Pure. */
import { quoted } from "../quote.ts";
import { isObject } from "./shape.ts";

type Fields = Readonly<Record<string, unknown>>;

/** A part of an object of the orchestrator that means nothing that this release can express. */
export class Unconvertible extends Error {
  override readonly name = "Unconvertible";
}

/** As in our selectors. */
const LABEL = /^[A-Za-z0-9_./-]{1,512}$/;

/** All terms must match; an empty selector has none. `prefix`: of the labels in our selectors. */
export function convertLabelSelector(selector: unknown, prefix = ""): readonly string[] {
  if (!isObject(selector)) throw new Unconvertible("a selector is not an object");
  const { matchLabels, matchExpressions, ...others } = selector;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw new Unconvertible(`a selector has the unknown field ${quoted(unknown)}`);
  const labels: Fields = matchLabels === undefined || matchLabels === null ? {} : requireObject(matchLabels);
  const expressions: unknown = matchExpressions ?? [];
  if (!Array.isArray(expressions)) throw new Unconvertible("matchExpressions is not a list");
  return [
    ...Object.entries(labels)
      .toSorted(([left], [right]) => (left < right ? -1 : 1))
      .map(([key, value]) => `${labelOf(key, prefix)} == ${textOf(value)}`),
    ...expressions.map((expression) => convertExpression(expression, prefix)),
  ];
}

function convertExpression(given: unknown, prefix: string): string {
  const { key, operator, values = [] } = requireObject(given);
  const label = labelOf(key, prefix);
  const set = () => {
    if (!Array.isArray(values)) throw new Unconvertible("the values of an expression are not a list");
    return `{${values.map(textOf).join(", ")}}`;
  };
  switch (operator) {
    case "In":
      return `${label} in ${set()}`;
    case "NotIn":
      return `${label} not in ${set()}`;
    case "Exists":
      return `has(${label})`;
    case "DoesNotExist":
      return `! has(${label})`;
    default:
      throw new Unconvertible(`the operator ${quoted(operator)} is not known`);
  }
}

function requireObject(value: unknown): Fields {
  if (!isObject(value)) throw new Unconvertible(`${quoted(value)} is not an object`);
  return value;
}

function labelOf(key: unknown, prefix: string): string {
  if (typeof key === "string" && LABEL.test(prefix + key)) return prefix + key;
  throw new Unconvertible(`${quoted(key)} is not a label`);
}

function textOf(value: unknown): string {
  if (typeof value !== "string" || (value.includes("'") && value.includes('"'))) {
    throw new Unconvertible(`${quoted(value)} is not the value of a label`);
  }
  return value.includes("'") ? `"${value}"` : `'${value}'`;
}
