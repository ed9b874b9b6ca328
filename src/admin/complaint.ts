import { redact } from "../redaction.ts";
import type { Context } from "./command.ts";
import { failureText } from "./failure-text.ts";
import { paint } from "./paint.ts";

/** Tells of a failure on stderr, and goes on. */
export function complain(context: Pick<Context, "stderr" | "env" | "isTerminal">, failure: unknown): void {
  context.stderr(`${paint(context).red("error:")} ${redact(failureText(failure))}\n`);
}
