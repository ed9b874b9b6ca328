/**
 * The path of an HTTP request in normal form, which rules are compared with: without its query, percent-decoded once,
 * without empty and dot segments. Pure.
 *
 * Servers read unusual paths in different ways. A request must not be allowed for a path that the server does not serve it
 * for, so a path matches a rule only if it does in every way to read it:
 * - Some servers do not merge slashes, resolve dot segments or decode `%2F`. Only the part before is read alike by all.
 * - A path that could be read as one with an entirely different beginning is ambiguous and matches no rule with paths.
 */
export type NormalPath =
  | {
      readonly ok: true;
      readonly path: string;
      /** If servers could read the path in different ways: how many of its characters all of them read alike. */
      readonly doubtfulFrom?: number;
    }
  /** The path is ambiguous. `reason` completes the sentence "the path …". */
  | { readonly ok: false; readonly reason: string };

type Segment = { readonly ok: true; readonly text: string; readonly isDoubtful: boolean };

/** Nothing to decode, merge or resolve: most requests. */
const NORMAL = /^(?:\/(?!\.)[\w.~!$&'()*+,:@=-]+)*\/?$/;
/** `;` begins parameters, which some servers remove before they merge slashes and resolve dots. */
const EMPTY_OR_DOTS_WITH_PARAMETERS = /^\.{0,2};/;
/** Some servers ignore what follows or precedes the dots (Windows: spaces and further dots), or append the segment to a folder. */
const LIKE_DOTS = /^\.\.|\.\.$|^\.[^\p{L}\p{N}_-]/u;
/** Windows ignores spaces and dots at the end of a segment: nothing is left of this one. */
const SPACES = /^\s[\s.]*$/;
/** Characters that are converted to a slash, backslash, dot, semicolon or percent sign by some character sets and normal forms. */
const LOOKS_LIKE_ANOTHER =
  /[\u037e\u2024-\u2026\u2044\u2215\u2216\u29f5\u29f8\u29f9\ufe19\ufe30\ufe52\ufe54\ufe68\ufe6a\uff05\uff0e\uff0f\uff1b\uff3c]/;
const ENCODED = /%(?:[0-9a-f]{2}|u[0-9a-f]{4})/i;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is looked for.
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029]/;
/** Must be percent-encoded. Servers read the bytes of other characters than ASCII as different ones. */
const NOT_ASCII = /[^\u0020-\u007e]/;
const REPLACEMENT = "\ufffd";

/** Of a path as the client sent it, with its query. */
export function normalPath(raw: string): NormalPath {
  const [path = ""] = raw.split("?", 1);
  if (path !== "" && NORMAL.test(path) && !path.includes("..")) return { ok: true, path };
  if (!path.startsWith("/")) return ambiguous('does not begin with "/"');
  if (path.includes("#")) return ambiguous('contains "#"');
  if (path.includes(" ")) return ambiguous("contains a space that is not percent-encoded");
  if (!path.isWellFormed()) return ambiguous("is not valid UTF-8");
  const segments: Segment[] = [];
  for (const segment of path.slice(1).split("/")) {
    const decoded = decodeSegment(segment);
    if (!decoded.ok) return decoded;
    segments.push(decoded);
  }
  return resolve(segments);
}

/** Of the path of a rule, which is written as it is compared: "%" is a character like any other. */
export function normalPathOfRule(path: string): NormalPath {
  if (!path.isWellFormed()) return ambiguous("is not valid UTF-8");
  const encoded = ENCODED.test(path) ? path : path.replaceAll("%", "%25");
  return normalPath(encoded.replaceAll(/[^\u0021-\u007e]/gu, encodeURIComponent));
}

function decodeSegment(segment: string): Segment | (NormalPath & { readonly ok: false }) {
  const text = decode(segment);
  if (text === undefined) return ambiguous("has an invalid percent-encoding");
  if (text.includes(REPLACEMENT)) return ambiguous("is not valid UTF-8");
  if (ENCODED.test(text)) return ambiguous("is percent-encoded twice");
  if (CONTROL.test(text)) return ambiguous("contains a control character");
  if (text.includes("\\")) return ambiguous("contains a backslash");
  if (LOOKS_LIKE_ANOTHER.test(text))
    return ambiguous("contains a character that looks like a slash, dot or percent sign");
  const parts = text.split("/");
  for (const part of parts) {
    if (EMPTY_OR_DOTS_WITH_PARAMETERS.test(part))
      return ambiguous("has an empty segment or dot segment with parameters");
    if (SPACES.test(part)) return ambiguous("has a segment of spaces");
    if (LIKE_DOTS.test(part) && !isDots(part)) return ambiguous("has a segment that resembles a dot segment");
  }
  // Some servers do not read an encoded slash as the end of a segment.
  if (parts.length > 1 && parts.some(isDots)) return ambiguous("has a dot segment next to an encoded slash");
  return { ok: true, text, isDoubtful: parts.length > 1 || NOT_ASCII.test(segment) };
}

function decode(segment: string): string | undefined {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}

function resolve(segments: readonly Segment[]): NormalPath {
  const resolved: string[] = [];
  /** So many of them were never followed by something that servers read differently. */
  let certain = Number.POSITIVE_INFINITY;
  for (const [index, { text, isDoubtful }] of segments.entries()) {
    const isEmpty = text === "" && index < segments.length - 1;
    if (isDoubtful || isEmpty) certain = Math.min(certain, resolved.length);
    if (!isDots(text)) {
      resolved.push(text);
      continue;
    }
    if (text === "..") {
      const removed = resolved.pop();
      if (removed === undefined) return ambiguous("leaves the root");
      // `/a//../b` is `/b` if slashes are merged first, and `/a/b` if they are not.
      if (removed === "") return ambiguous("has a dot segment after an empty segment");
      if (removed.includes("/")) return ambiguous("has a dot segment next to an encoded slash");
    }
    certain = Math.min(certain, resolved.length);
  }
  const endsWithDots = isDots(segments.at(-1)?.text ?? "");
  const joined = `/${resolved.join("/")}${endsWithDots && resolved.length > 0 ? "/" : ""}`;
  // The beginning of a URL without its scheme: `//a/b` is the path `/b` of the host `a`.
  if (joined.startsWith("//")) return ambiguous("begins with two slashes");
  const path = joined.replaceAll(/\/{2,}/g, "/");
  if (certain === Number.POSITIVE_INFINITY) return { ok: true, path };
  const alike = `/${resolved.slice(0, certain).join("/")}`.length;
  // `/a/b/..` is `/a/` or `/a`.
  const hasSlash = certain > 0 && !(endsWithDots && certain === resolved.length);
  return { ok: true, path, doubtfulFrom: alike + (hasSlash ? 1 : 0) };
}

function isDots(segment: string): boolean {
  return segment === "." || segment === "..";
}

function ambiguous(reason: string): NormalPath & { readonly ok: false } {
  return { ok: false, reason };
}
