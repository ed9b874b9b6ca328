/** What the staged kinds have in common. A staged policy is never enforced: only what it would decide is shown. */
import * as v from "valibot";
import type { Problem } from "./problem.ts";
import { isObject } from "./shape.ts";

/**
 * What promoting the policy would do: write the enforced policy of the same name, or delete it. Peers have two more actions for
 * products that draft policies (Learn, Ignore); nothing here would carry them out.
 */
export const stagedActionField = v.optional(v.picklist(["Set", "Delete"]), "Set");

/** The rules of the CRDs have the same one. */
export function deletionMessage(allowed: readonly string[]): string {
  const needed = ["the name", ...allowed].join(" and ");
  return `is not allowed with stagedAction Delete, which needs no more than ${needed}; remove it, or use stagedAction Set`;
}

/** A deletion with rules would not say what is meant. `allowed`: the fields that it may have. */
export function checkDeletion(spec: object, allowed: readonly string[]): readonly Problem[] {
  const message = deletionMessage(allowed);
  return Object.entries(spec).flatMap(([name, value]) =>
    isAbsent(value) || allowed.includes(name) ? [] : [{ path: `spec.${name}`, value, message }],
  );
}

/** Other programs write what is empty. */
function isAbsent(value: unknown): boolean {
  return value === undefined || value === false || (isObject(value) && Object.keys(value).length === 0);
}
