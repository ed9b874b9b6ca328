/**
 * Strategic merge patch for kinds whose lists have no merge keys: objects are
 * merged, `null` removes, lists are replaced; `$patch` in an object says whether
 * it is merged, replaced or deleted. Directives that need a merge key are refused.
 */
import { isObject } from "../../model/shape.ts";
import { quoted } from "../../quote.ts";
import { PatchError } from "./patch-error.ts";

const DIRECTIVE = "$patch";

export function strategicPatch(target: unknown, patch: unknown): unknown {
  if (Array.isArray(patch)) return withoutDirectives(patch);
  if (!isObject(patch)) return patch;
  const { [DIRECTIVE]: directive = "merge", ...changes } = patch;
  refuseOthers(changes);
  switch (directive) {
    case "delete":
      return undefined;
    case "replace":
      return strategicPatch({}, changes);
    case "merge":
      return merged(target, changes);
    default:
      throw new PatchError(`${DIRECTIVE}: ${quoted(directive)} is not a directive; use merge, replace or delete`);
  }
}

function merged(target: unknown, changes: Readonly<Record<string, unknown>>): unknown {
  const members = new Map(Object.entries(isObject(target) ? target : {}));
  for (const [name, change] of Object.entries(changes)) {
    const value = change === null ? undefined : strategicPatch(members.get(name), change);
    if (value === undefined) members.delete(name);
    else members.set(name, value);
  }
  return Object.fromEntries(members);
}

/** A list is replaced in any case, which a member with `$patch: replace` says too. */
function withoutDirectives(list: readonly unknown[]): unknown {
  return list
    .filter((member) => !(isObject(member) && member[DIRECTIVE] === "replace" && Object.keys(member).length === 1))
    .map((member) => {
      if (isObject(member) && Object.hasOwn(member, DIRECTIVE)) {
        throw new PatchError(`${DIRECTIVE} in a member of a list: these lists have no merge key; use --type json`);
      }
      return strategicPatch({}, member);
    });
}

function refuseOthers(changes: Readonly<Record<string, unknown>>): void {
  const other = Object.keys(changes).find((name) => name.startsWith("$"));
  if (other === undefined) return;
  throw new PatchError(`${quoted(other)} is not supported: lists of this kind have no merge key; use --type json`);
}
