/**
 * No server reads an allowed path as one that the rule does not match: random paths, and what common servers make of them.
 * What is written here imitates their documented order of steps, not their code.
 */
import { expect, test } from "bun:test";
import { posix } from "node:path";
import fc from "fast-check";
import { type HttpPath, matchesHttp, normalRequest } from "../../http/http-match.ts";

type Server = (path: string) => string | undefined;

const decode = (text: string) => {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
};
const withoutParameters = (path: string) => path.replaceAll(/;[^/]*/g, "");
const merged = (path: string) => path.replaceAll(/\/{2,}/g, "/");
const urlOf = (path: string) => (URL.canParse(path, "http://host") ? new URL(path, "http://host").pathname : undefined);
/** Dots and spaces at the end of a segment are ignored, except in dot segments. */
const onWindows = (path: string) =>
  path
    .replaceAll("\\", "/")
    .split("/")
    .map((segment) => (/^\.\.?$/.test(segment) ? segment : segment.replace(/[. ]+$/, "")))
    .join("/");

const SERVERS: Readonly<Record<string, Server>> = {
  "as it was sent": (path) => path,
  "decoded only": decode,
  "decoded except slashes": (path) => decode(path.replaceAll(/%2f/gi, "%252F")),
  "Node's URL": urlOf,
  "Node's URL, decoded": (path) => decode(urlOf(path) ?? "%"),
  "decoded, merged, resolved (nginx)": (path) => posix.normalize(merged(decode(path) ?? "")),
  "resolved, not merged": (path) => decode(new URL(`http://host${path}`).pathname),
  "resolved, then decoded, not resolved again": (path) => decode(posix.normalize(path)),
  "without parameters, decoded, merged, resolved (Tomcat)": (path) =>
    posix.normalize(merged(decode(withoutParameters(path)) ?? "")),
  "decoded, without parameters, merged, resolved": (path) =>
    posix.normalize(merged(withoutParameters(decode(path) ?? ""))),
  "without parameters, resolved, not merged": (path) =>
    decode(new URL(`http://host${withoutParameters(path)}`).pathname),
  "cleaned, without the last slash (Go)": (path) => posix.join(decode(path) ?? "", "."),
  "decoded twice": (path) => decode(decode(path) ?? "%"),
  Windows: (path) => posix.normalize(onWindows(decode(path) ?? "")),
};

const RULES: readonly HttpPath[] = [
  ...["/", "/a", "/a/", "/a/b", "/a/b/", "/b"].map((prefix) => ({ prefix })),
  ...["/", "/a", "/a/", "/a/b", "/b"].map((exact) => ({ exact })),
];

const PIECES = [
  "a",
  "b",
  "a",
  "b",
  ".",
  "..",
  "",
  "",
  "%2e",
  "%2E.",
  ";",
  ";x",
  "..;",
  "%3b",
  "a;x",
  "%2f",
  "%20",
  "%5c",
  "\\",
  "%252e",
  "...",
];
const segments = fc.array(fc.constantFrom(...PIECES), { maxLength: 2 }).map((pieces) => pieces.join(""));
const paths = fc.array(segments, { maxLength: 7 }).map((all) => `/${all.join("/")}`);

test("a path matches only rules that it matches as any server reads it", () => {
  let matches = 0;
  fc.assert(
    fc.property(paths, fc.constantFrom(...RULES), (path, rule) => {
      if (!matchesHttp({ paths: [rule] }, normalRequest({ method: "GET", path }))) return;
      matches++;
      for (const [server, read] of Object.entries(SERVERS)) {
        // Servers read unreserved characters alike, whether they are encoded or not.
        const served = read(path)?.replaceAll(/%(?:61|62)/g, (text) => decode(text) ?? "");
        if (served === undefined || served === "") continue;
        const isSame = "exact" in rule ? isExact(served, rule.exact) : isBelow(served, rule.prefix);
        expect(isSame ? "same" : `${server} reads ${path} as ${served}`).toBe("same");
      }
    }),
    { numRuns: 20_000 },
  );
  expect(matches).toBeGreaterThan(500);
});

/** Many servers do not distinguish `/a/` from `/a`. */
function isExact(served: string, wanted: string): boolean {
  return served.replace(/\/$/, "") === wanted.replace(/\/$/, "");
}

function isBelow(served: string, prefix: string): boolean {
  return served.startsWith(prefix) || `${served}/` === prefix;
}
