/** Whether an object has everything that it should have; what else it has is left to others. Pure. */
import { isObject } from "../../model/shape.ts";

/** Members of lists are compared by their names if they have any, as the API merges them, and otherwise by their positions. */
export function isContained(wanted: unknown, live: unknown): boolean {
  if (isEmpty(wanted)) return true;
  if (Array.isArray(wanted)) return Array.isArray(live) && isListContained(wanted, live);
  if (!isObject(wanted)) return wanted === live;
  return isObject(live) && Object.entries(wanted).every(([name, value]) => isContained(value, live[name]));
}

/** The API does not store what is empty. */
function isEmpty(value: unknown): boolean {
  if (value === null || value === undefined) return true;
  if (Array.isArray(value)) return value.length === 0;
  return isObject(value) && Object.keys(value).length === 0;
}

function isListContained(wanted: readonly unknown[], live: readonly unknown[]): boolean {
  const areNamed = wanted.every((member) => isObject(member) && typeof member["name"] === "string");
  if (!areNamed) {
    return wanted.length === live.length && wanted.every((member, index) => isContained(member, live[index]));
  }
  const named = new Map(live.filter(isObject).map((member) => [member["name"], member]));
  return wanted.filter(isObject).every((member) => isContained(member, named.get(member["name"])));
}
