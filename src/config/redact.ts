/** Removes secrets from config values; `src/redaction.ts` does it for free text. */
import { HIDDEN, isSecretName, redact } from "../redaction.ts";

/**
 * Redacts one value, such as a URL or a list of URLs. Unlike in free text, a
 * password may contain white space or quotes: everything before an `@` is removed, except in the path of a file.
 */
export function redactValue(value: string): string {
  if (isFilePath(value)) return redact(value);
  return value
    .split(/,(?=\s*https?:\/\/)/i)
    .map((part) => redact(part.replace(/^(\s*[a-z][a-z0-9+.-]*:\/\/)?[\s\S]*@/i, "$1[redacted]@")))
    .join(",");
}

/**
 * Without a colon and `//` it contains no URL; after an `@` in a directory follows the rest of the path, after that of a user
 * only the host.
 */
function isFilePath(value: string): boolean {
  return /^\/[^:\s"',]*$/.test(value) && !value.includes("//") && value.lastIndexOf("/") > value.lastIndexOf("@");
}

/** Redacts every string in a plain value, and the values of keys with secret names. */
export function redactAll(value: unknown): unknown {
  if (typeof value === "string") return redactValue(value);
  if (Array.isArray(value)) return value.map(redactAll);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      redactValue(key),
      isSecretName(key) && !isAbsent(inner) ? HIDDEN : redactAll(inner),
    ]),
  );
}

/** There is no secret to hide, and one must not be invented. */
function isAbsent(value: unknown): boolean {
  return value === undefined || value === null || value === "";
}
