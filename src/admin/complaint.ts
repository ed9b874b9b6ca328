import { redact } from "../redaction.ts";
import type { Context } from "./command.ts";
import { failureText } from "./failure-text.ts";
import { paintComplaint } from "./paint.ts";

/** Tells of a failure on stderr, and goes on. */
export function complain(context: Pick<Context, "stderr" | "env" | "showsProgress">, failure: unknown): void {
  context.stderr(`${paintComplaint(context).red("error:")} ${redact(failureText(failure))}\n`);
}
