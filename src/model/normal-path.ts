/**
 * The path of an HTTP request in normal form, which rules are compared with: without its query, percent-decoded once,
 * without empty and dot segments. Pure.
 *
 * Servers read unusual paths in different ways. A path that two of them could read as two different ones is ambiguous:
 * it matches no rule with paths, so that no request is allowed for a path that the server does not serve it for.
 */
export type NormalPath =
  | { readonly ok: true; readonly path: string }
  /** The path is ambiguous. `reason` completes the sentence "the path …". */
  | { readonly ok: false; readonly reason: string };

/** Nothing to decode, merge or resolve: most requests. */
const NORMAL = /^(?:\/(?!\.)[\w.~!$&'()*+,:@=-]+)*\/?$/;
/** At the end of a segment without parameters: `;` begins parameters, which some servers remove before they resolve dots. */
const DOTS_WITH_PARAMETERS = /^\.\.?;/;
const ENCODED = /%[0-9a-f]{2}/i;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;
const REPLACEMENT = "\ufffd";

/** Of a path as the client sent it, with its query. */
export function normalPath(raw: string): NormalPath {
  const [path = ""] = raw.split("?", 1);
  if (path !== "" && NORMAL.test(path)) return { ok: true, path };
  if (!path.startsWith("/")) return ambiguous('does not begin with "/"');
  if (path.includes("#")) return ambiguous('contains "#"');
  if (!path.isWellFormed() || path.includes(REPLACEMENT)) return ambiguous("is not valid UTF-8");
  const segments: string[] = [];
  for (const segment of path.slice(1).split("/")) {
    const decoded = decodeSegment(segment);
    if (!decoded.ok) return decoded;
    segments.push(decoded.path);
  }
  return resolve(segments);
}

/** Of the path of a rule, which is written as it is compared: "%" is a character like any other. */
export function normalPathOfRule(path: string): NormalPath {
  return normalPath(ENCODED.test(path) ? path : path.replaceAll("%", "%25"));
}

function decodeSegment(segment: string): NormalPath {
  const decoded = decode(segment);
  if (decoded === undefined) return ambiguous("has an invalid percent-encoding");
  if (ENCODED.test(decoded)) return ambiguous("is percent-encoded twice");
  if (CONTROL.test(decoded)) return ambiguous("contains a control character");
  if (decoded.includes("\\")) return ambiguous("contains a backslash");
  const parts = decoded.split("/");
  if (parts.some((part) => DOTS_WITH_PARAMETERS.test(part))) return ambiguous("has a dot segment with parameters");
  // Some servers do not read an encoded slash as the end of a segment.
  if (parts.length > 1 && parts.some(isDots)) return ambiguous("has a dot segment next to an encoded slash");
  return { ok: true, path: decoded };
}

function decode(segment: string): string | undefined {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

function resolve(segments: readonly string[]): NormalPath {
  const resolved: string[] = [];
  for (const segment of segments) {
    if (segment === ".") continue;
    if (segment !== "..") {
      resolved.push(segment);
      continue;
    }
    const removed = resolved.pop();
    if (removed === undefined) return ambiguous("leaves the root");
    // `/a//../b` is `/b` if slashes are merged first, and `/a/b` if they are not.
    if (removed === "") return ambiguous("has a dot segment after an empty segment");
    if (removed.includes("/")) return ambiguous("has a dot segment next to an encoded slash");
  }
  const last = segments.at(-1);
  const joined = `/${resolved.join("/")}${last !== undefined && isDots(last) ? "/" : ""}`;
  return { ok: true, path: joined.replaceAll(/\/{2,}/g, "/") };
}

function isDots(segment: string): boolean {
  return segment === "." || segment === "..";
}

function ambiguous(reason: string): NormalPath {
  return { ok: false, reason };
}
