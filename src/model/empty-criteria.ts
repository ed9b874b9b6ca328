/**
 * Criteria of rules that are present but empty, as `http:` in YAML if all lines below it are comments. Elsewhere `null`
 * means absent; a rule without the criterion would match more than its author wants. Pure.
 */
import type { Problem } from "./problem.ts";
import { isObject } from "./shape.ts";

const MESSAGES: Readonly<Record<string, string>> = {
  http: "is empty; use {} for every HTTP request, or remove it to allow every connection",
  "http.methods": "is empty; add methods, or remove it for every method",
  "http.paths": "is empty; add paths, or remove it for every path",
};
const OTHER = "is empty; give it a value, or remove it";

/** Not criteria: without an action the rule is refused, and annotations do not match anything. */
const NOT_CRITERIA = ["action", "metadata"];

/** Of a whole resource whose spec has lists of rules. */
export function findEmptyCriteria(resource: unknown): readonly Problem[] {
  if (!isObject(resource) || !isObject(resource["spec"])) return [];
  const { spec } = resource;
  return ["ingress", "egress"].flatMap((direction) => {
    const rules = spec[direction];
    return Array.isArray(rules) ? rules.flatMap((rule, index) => inRule(rule, `spec.${direction}[${index}]`)) : [];
  });
}

function inRule(rule: unknown, path: string): readonly Problem[] {
  if (!isObject(rule)) return [];
  return Object.entries(rule).flatMap(([name, value]) =>
    NOT_CRITERIA.includes(name) ? [] : inCriterion(value, name, path),
  );
}

/** `name`: the path in the rule, which has the path `rule`. */
function inCriterion(value: unknown, name: string, rule: string): readonly Problem[] {
  if (value === null) return [{ path: `${rule}.${name}`, value: undefined, message: MESSAGES[name] ?? OTHER }];
  if (Array.isArray(value)) {
    return value.flatMap((member, index) => (isObject(member) ? inCriterion(member, `${name}[${index}]`, rule) : []));
  }
  if (!isObject(value)) return [];
  return Object.entries(value).flatMap(([field, member]) => inCriterion(member, `${name}.${field}`, rule));
}
