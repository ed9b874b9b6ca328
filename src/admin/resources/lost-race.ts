import type { Written } from "../../datastore/datastore.ts";
import { type ErrorKind, PluginError } from "../../errors.ts";

type Reason = Extract<Written, { readonly ok: false }>["reason"];

const OUTCOMES: Readonly<Record<Reason, readonly [kind: ErrorKind, state: string]>> = {
  exists: ["resource-exists", "it was created concurrently"],
  missing: ["resource-missing", "it was deleted concurrently"],
  stale: ["resource-changed", "it was changed concurrently"],
};

/** The error of a write that lost a race with another writer; `action`: what was attempted, "Cannot delete ippool/blue". */
export function lostRace(action: string, reason: Reason): PluginError {
  const [kind, state] = OUTCOMES[reason];
  return new PluginError(kind, `${action}: ${state}`);
}
