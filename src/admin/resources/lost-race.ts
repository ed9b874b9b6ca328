import type { Written } from "../../datastore/datastore.ts";
import { type ErrorKind, PluginError } from "../../errors.ts";

type Reason = Extract<Written, { readonly ok: false }>["reason"];

const OUTCOMES: Readonly<Record<Reason, readonly [kind: ErrorKind, state: string]>> = {
  exists: ["resource-exists", "it was created at the same time"],
  missing: ["resource-missing", "it was deleted at the same time"],
  stale: ["resource-changed", "it was changed at the same time"],
};

/** The failure of a write because somebody else was quicker; `action`: what was attempted, "Cannot delete ippool/blue". */
export function lostRace(action: string, reason: Reason): PluginError {
  const [kind, state] = OUTCOMES[reason];
  return new PluginError(kind, `${action}: ${state}`);
}
