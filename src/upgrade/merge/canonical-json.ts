/** Values are equal if these texts are: the order of members means nothing, absent members and `undefined` are the same. */
import { isObject } from "../../model/shape.ts";

export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (!isObject(value)) return JSON.stringify(value) ?? "null";
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  const sorted = members.toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `{${sorted.map(([name, member]) => `${JSON.stringify(name)}:${canonicalJson(member)}`).join(",")}}`;
}

export function isSame(a: unknown, b: unknown): boolean {
  if (a === undefined || b === undefined) return a === b;
  return canonicalJson(a) === canonicalJson(b);
}
