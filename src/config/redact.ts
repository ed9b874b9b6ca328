/** Removes secrets from config values; `src/redaction.ts` does it for free text. */
import { isSecretName, redact } from "../redaction.ts";

/**
 * Redacts one value, such as a URL or a list of URLs. Unlike in free text, a
 * password may contain white space or quotes: everything before an `@` is removed.
 */
export function redactValue(value: string): string {
  return value
    .split(/,(?=\s*https?:\/\/)/i)
    .map((part) => redact(part.replace(/^(\s*[a-z][a-z0-9+.-]*:\/\/)?[\s\S]*@/i, "$1[redacted]@")))
    .join(",");
}

/** Redacts every string in a plain value, and the values of keys with secret names. */
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
