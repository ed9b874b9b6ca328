/** What the client is told instead of an answer: a status, why, and what to do. No message contains a token. */
import { type ErrorKind, PluginError } from "../../errors.ts";
import { FlowQueryError } from "../../flows/flow-query.ts";
import { statusOfRefusal } from "../../kube/require-ok.ts";
import { redact } from "../../redaction.ts";
import type { RefusalAnswer } from "../api/session.ts";
import { TokenRefused } from "../source.ts";

export class Refusal extends Error {
  override readonly name = "Refusal";

  constructor(
    readonly status: number,
    message: string,
    readonly remedy?: string,
  ) {
    super(message);
  }

  /** With other texts. */
  with(change: (text: string) => string): Refusal {
    const { status, message, remedy } = this;
    return new Refusal(status, change(message), remedy === undefined ? undefined : change(remedy));
  }

  get answer(): RefusalAnswer {
    const { message, remedy } = this;
    return remedy === undefined ? { message } : { message, remedy };
  }
}

export const SESSION_ENDED = "Log in again";

const STATUS: Partial<Record<ErrorKind, number>> = {
  "resource-missing": 404,
  "resource-changed": 409,
  "resource-exists": 409,
  "resource-invalid": 422,
  "config-invalid": 422,
  "record-too-large": 422,
  interrupted: 503,
};

/** What a failure of a source means for its reader. */
export function refusalOf(failure: unknown): Refusal {
  if (failure instanceof Refusal) return failure;
  if (failure instanceof FlowQueryError) return new Refusal(400, redact(failure.message));
  if (!(failure instanceof PluginError)) return new Refusal(500, "The console failed; its log says why");
  const { kind, retry } = failure;
  const message = redact(failure.message);
  const remedy = failure.details === "" ? undefined : redact(failure.details);
  if (meansRefusedToken(failure)) return new Refusal(401, message, SESSION_ENDED);
  if (statusOfRefusal(failure) === 403) return new Refusal(403, message, remedy);
  return new Refusal(STATUS[kind] ?? (retry === "later" ? 503 : 500), message, remedy);
}

/** Whether the reader's session ends with it. */
export function meansRefusedToken(failure: unknown): boolean {
  return failure instanceof TokenRefused || statusOfRefusal(failure) === 401;
}
