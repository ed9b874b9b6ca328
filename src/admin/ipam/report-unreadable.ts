import type { Unreadable } from "../../datastore/read-each.ts";
import { EXIT_FAILED, EXIT_OK, type ExitCode } from "../main/command.ts";
import type { ClusterAccess } from "../main/context.ts";
import { reportError } from "../main/report-error.ts";
import { withRemedy } from "../resources/unreadable-remedy.ts";

/** Reports each on stderr, with its remedy; returns the exit code of a command that did everything else. */
export function reportUnreadable(context: ClusterAccess, unreadable: readonly Unreadable[]): ExitCode {
  for (const { key, failure } of unreadable) reportError(context, withRemedy(key, failure));
  return unreadable.length === 0 ? EXIT_OK : EXIT_FAILED;
}
