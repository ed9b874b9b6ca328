import { redact } from "../redaction.ts";
import type { Context } from "./command.ts";
import { errorMessage } from "./error-message.ts";
import { paintStderr } from "./paint.ts";

/** Prints an error on stderr; the command goes on. */
export function reportError(context: Pick<Context, "stderr" | "env" | "showsProgress">, failure: unknown): void {
  context.stderr(`${paintStderr(context).red("error:")} ${redact(errorMessage(failure))}\n`);
}
