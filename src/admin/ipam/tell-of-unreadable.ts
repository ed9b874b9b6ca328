import type { Unreadable } from "../../datastore/read-each.ts";
import { type Context, EXIT_FAILED, EXIT_OK, type ExitCode } from "../command.ts";
import { complain } from "../complaint.ts";
import { withWayOut } from "../resources/way-out.ts";

/** Names each on stderr, with its way out; answers the exit code of a command that did all it could without them. */
export function tellOfUnreadable(context: Context, unreadable: readonly Unreadable[]): ExitCode {
  for (const { key, failure } of unreadable) complain(context, withWayOut(key, failure));
  return unreadable.length === 0 ? EXIT_OK : EXIT_FAILED;
}
