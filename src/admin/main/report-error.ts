import { describeFailure } from "../../errors.ts";
import { redact } from "../../redaction.ts";
import { paintStderr } from "../terminal/paint.ts";
import { UsageError } from "./command.ts";
import type { Context } from "./context.ts";
import { Interruption } from "./interruption.ts";

/** Prints an error on stderr; the command goes on. */
export function reportError(
  context: Pick<Context, "stderr" | "env" | "showsProgress" | "datastoreNotice">,
  failure: unknown,
): void {
  // A wrong call and Ctrl-C have nothing to do with the datastore.
  if (!(failure instanceof UsageError || failure instanceof Interruption)) context.datastoreNotice?.print();
  context.stderr(`${paintStderr(context).red("error:")} ${redact(describeFailure(failure))}\n`);
}
