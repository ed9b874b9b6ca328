/** When to send a request again that the server refused because it is overloaded (429) or starting (503, 403). Pure. */
import type { AnswerHead } from "./failure.ts";

const DEFAULT_MILLISECONDS = 1_000;
const RETRIED: ReadonlySet<number> = new Set([429, 503]);
const MISSING_ROLES_MILLISECONDS = 200;
/** Part of the reason, in JSON: its quotes are escaped. */
const MISSING_ROLE = /clusterrole\.rbac\.authorization\.k8s\.io \\"system:[^"]*\\" not found/;

/** `undefined` if it does not ask. A 503 without Retry-After is an ordinary refusal. */
export function retryAfterMilliseconds({ status, headers }: AnswerHead): number | undefined {
  if (!RETRIED.has(status)) return undefined;
  const given = headers.get("retry-after");
  if (given === null) return status === 429 ? DEFAULT_MILLISECONDS : undefined;
  // The API always sends seconds; a date would come from a proxy.
  const seconds = Number(given);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1_000 : DEFAULT_MILLISECONDS;
}

/**
 * A server that has just started refuses everything until it has loaded its roles. The reason in its response is then
 * that roles do not exist which every cluster has. Returns `undefined` for any other response.
 */
export function missingRolesPause(status: number, text: string): number | undefined {
  return status === 403 && MISSING_ROLE.test(text) ? MISSING_ROLES_MILLISECONDS : undefined;
}
