/** The difference between two values as a JSON merge patch, and whether it conflicts with another change. Pure. */
import { isObject } from "../../model/shape.ts";

type Patch = Readonly<Record<string, unknown>>;

/** The merge patch that makes `after` of `before`; `null` in either means absent. */
export function patchBetween(before: object, after: object): Patch {
  const [old, changed] = [new Map(Object.entries(before)), new Map(Object.entries(after))];
  const names = new Set([...old.keys(), ...changed.keys()]);
  const members = [...names].flatMap((name): [string, unknown][] => {
    const [from, to] = [old.get(name) ?? null, changed.get(name) ?? null];
    if (Bun.deepEquals(from, to)) return [];
    return [[name, isObject(from) && isObject(to) ? patchBetween(from, to) : to]];
  });
  return Object.fromEntries(members);
}

/** The paths that the patch changes and that are neither as they were nor as the patch makes them. */
export function conflictsOf(original: unknown, current: unknown, patch: unknown, path = ""): readonly string[] {
  if (isObject(patch) && isObject(original) && isObject(current)) {
    return Object.entries(patch).flatMap(([name, change]) =>
      conflictsOf(memberOf(original, name), memberOf(current, name), change, path === "" ? name : `${path}.${name}`),
    );
  }
  const isFree = Bun.deepEquals(original ?? null, current ?? null) || Bun.deepEquals(current ?? null, patch);
  return isFree ? [] : [path];
}

function memberOf(value: Patch, name: string): unknown {
  return Object.hasOwn(value, name) ? value[name] : undefined;
}
