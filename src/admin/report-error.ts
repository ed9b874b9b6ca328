import { describeFailure } from "../errors.ts";
import { redact } from "../redaction.ts";
import type { Context } from "./command.ts";
import { paintStderr } from "./paint.ts";

/** Prints an error on stderr; the command goes on. */
export function reportError(context: Pick<Context, "stderr" | "env" | "showsProgress">, failure: unknown): void {
  context.stderr(`${paintStderr(context).red("error:")} ${redact(describeFailure(failure))}\n`);
}
