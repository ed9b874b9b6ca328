/** When the server asks to send a request again, because it is overloaded (429) or starting (503). Pure. */
const DEFAULT_MILLISECONDS = 1_000;
const RETRIED: ReadonlySet<number> = new Set([429, 503]);

/** `undefined` if it does not ask. A 503 without Retry-After is an ordinary refusal. */
export function retryAfterMilliseconds({ status, headers }: Pick<Response, "status" | "headers">): number | undefined {
  if (!RETRIED.has(status)) return undefined;
  const given = headers.get("retry-after");
  if (given === null) return status === 429 ? DEFAULT_MILLISECONDS : undefined;
  // The API always sends seconds; a date would come from a proxy.
  const seconds = Number(given);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds * 1_000 : DEFAULT_MILLISECONDS;
}
