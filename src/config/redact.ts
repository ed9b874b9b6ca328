/**
 * Takes secrets out of text before anyone sees it.
 *
 * Every message and log line that shows a config value, a URL or a foreign
 * error passes through here. It prefers hiding too much to hiding too little.
 */
const HIDDEN = "***";
const SECRET_KEY = /token|password|passwd|secret|api_?key/i;

/** Free text: messages of other programs, lines to be logged. */
export function redact(text: string): string {
  return hideTokens(text).replace(/([a-z][a-z0-9+.-]*:\/\/)?(?:[^\s"',]|,(?!\s*[a-z]+:\/\/))*@/gi, hideCredentials);
}

/** One whole value, such as a URL or a comma-separated list of URLs: everything before an `@` goes. */
export function redactUrl(value: string): string {
  return value
    .split(/,(?=\s*[a-z][a-z0-9+.-]*:\/\/)/i)
    .map((part) => hideTokens(part).replace(/^(\s*[a-z][a-z0-9+.-]*:\/\/)?[\s\S]*@/i, hideCredentials))
    .join(",");
}

/** A plain value with every string in it redacted, and whatever a key calls secret. */
export function redactAll(value: unknown): unknown {
  if (typeof value === "string") return redactUrl(value);
  if (Array.isArray(value)) return value.map(redactAll);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [redactUrl(key), SECRET_KEY.test(key) ? HIDDEN : redactAll(inner)]),
  );
}

function hideCredentials(_match: string, scheme: string | undefined): string {
  return `${scheme ?? ""}${HIDDEN}@`;
}

function hideTokens(text: string): string {
  return text
    .replace(/-----BEGIN [A-Z0-9 ]+-----[\s\S]*?(-----END [A-Z0-9 ]+-----|$)/g, `(PEM ${HIDDEN})`)
    .replace(/\b(bearer|basic)\s+[^\s"',]+/gi, `$1 ${HIDDEN}`)
    .replace(/\beyJ[\w-]+\.[\w.-]+/g, HIDDEN)
    .replace(
      /\b([\w-]*(?:token|password|passwd|secret|api[_-]?key|access[_-]?key)["']?\s*[=:]\s*["']?)[^\s"'&,]+/gi,
      `$1${HIDDEN}`,
    );
}
