/**
 * Fields that are decoded but not yet implemented in this release.
 *
 * Every call logs a warning about them, and `config check` reports them: nobody
 * should rely on a policy that is not enforced. Remove a row when its field is
 * implemented.
 */
import type { ConfigProblem } from "./problem.ts";

/** By full field name: what does not happen although the field requests it. */
export const WITHOUT_EFFECT: Readonly<Record<string, string>> = {
  "policy.type": "network policy is not enforced, all traffic passes",
  policy_setup_timeout_seconds: "pods do not wait for their policy",
  endpoint_status_dir: "pods do not wait for their policy",
};

/** `present`: every value that is present, by its full name. A feature that is switched off needs no warning. */
export function withoutEffect(present: ReadonlyMap<string, unknown>): readonly ConfigProblem[] {
  return Object.entries(WITHOUT_EFFECT).flatMap(([field, consequence]) => {
    if (!present.has(field) || present.get(field) === false) return [];
    const message = `"${field}" has no effect in this version: ${consequence}; remove it, or do not rely on it`;
    return [{ path: field.split("."), message }];
  });
}
