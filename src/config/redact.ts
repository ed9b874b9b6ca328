/** Takes secrets out of config values; `src/redaction.ts` does it for free text. */
import { isSecretName, redact } from "../redaction.ts";

/**
 * One whole value, such as a URL or a list of URLs. Unlike free text it may hold
 * white space or quotes inside a password: everything before an `@` goes.
 */
export function redactValue(value: string): string {
  return value
    .split(/,(?=\s*https?:\/\/)/i)
    .map((part) => redact(part.replace(/^(\s*[a-z][a-z0-9+.-]*:\/\/)?[\s\S]*@/i, "$1[redacted]@")))
    .join(",");
}

/** A plain value with every string in it redacted, and whatever a key calls secret. */
export function redactAll(value: unknown): unknown {
  if (typeof value === "string") return redactValue(value);
  if (Array.isArray(value)) return value.map(redactAll);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      redactValue(key),
      isSecretName(key) ? "[redacted]" : redactAll(inner),
    ]),
  );
}
