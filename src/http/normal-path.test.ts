/** The cases of docs/http-rules.md. */
import { describe, expect, test } from "bun:test";
import { normalPath, normalPathOfRule } from "./normal-path.ts";

const NORMAL: readonly (readonly [string, string])[] = [
  ["/", "/"],
  ["/a/b", "/a/b"],
  ["/a/", "/a/"],
  ["/a.b/.c/v1...v2", "/a.b/.c/v1...v2"],
  ["/.well-known/x", "/.well-known/x"],
  // The query is not compared.
  ["/a?b=/../c#d", "/a"],
  ["/?", "/"],
  // Percent-encoding is decoded, once.
  ["/%61", "/a"],
  ["/%C3%A9", "/é"],
  ["/a%20b", "/a b"],
  ["/100%25", "/100%"],
  ["/a%3Fb%23c", "/a?b#c"],
  ["/a;x=1/b", "/a;x=1/b"],
];

/** With the part that every server reads alike. */
const DOUBTFUL: readonly (readonly [string, string, string])[] = [
  // Empty segments.
  ["/a///b//", "/a/b/", "/a/"],
  ["/a//", "/a/", "/a/"],
  // Dot segments.
  ["/.", "/", "/"],
  ["/a/./b", "/a/b", "/a/"],
  ["/a/.", "/a/", "/a"],
  ["/a/../b", "/b", "/"],
  ["/a/..", "/", "/"],
  ["/a/../", "/", "/"],
  ["/a/b/..", "/a/", "/a"],
  ["/a/b/../", "/a/", "/a/"],
  ["/a/b/../../c", "/c", "/"],
  ["/a/b/../../a/b/c", "/a/b/c", "/"],
  ["/a/b/c/../d/e", "/a/b/d/e", "/a/b/"],
  ["/a/%2e%2E/b", "/b", "/"],
  ["/a/.%2e/b", "/b", "/"],
  // Encoded slashes.
  ["/a%2Fb", "/a/b", "/"],
  ["/a/b%2f%2Fc", "/a/b/c", "/a/"],
  ["/queues/%2F/name", "/queues/name", "/queues/"],
  // Bytes that should be encoded.
  ["/a/é", "/a/é", "/a/"],
];

const WITH_PARAMETERS = "has an empty segment or dot segment with parameters";
const LIKE_DOTS = "has a segment that resembles a dot segment";
const LOOKS_LIKE_ANOTHER = "contains a character that looks like a slash, dot or percent sign";

const AMBIGUOUS: readonly (readonly [string, string])[] = [
  ["", 'does not begin with "/"'],
  ["*", 'does not begin with "/"'],
  ["a/b", 'does not begin with "/"'],
  ["?/a", 'does not begin with "/"'],
  ["http://host/a", 'does not begin with "/"'],
  ["/a#/../b", 'contains "#"'],
  ["/a%", "has an invalid percent-encoding"],
  ["/a%2", "has an invalid percent-encoding"],
  ["/a%zz", "has an invalid percent-encoding"],
  ["/a%u002f", "has an invalid percent-encoding"],
  ["/%ff", "has an invalid percent-encoding"],
  ["/%c0%af", "has an invalid percent-encoding"],
  ["/%ed%a0%80", "has an invalid percent-encoding"],
  ["/%2561", "is percent-encoded twice"],
  ["/%25%32%65", "is percent-encoded twice"],
  ["/a%00", "contains a control character"],
  ["/a%0d%0ab", "contains a control character"],
  ["/a\tb", "contains a control character"],
  ["/a%7f", "contains a control character"],
  ["/a\\..\\b", "contains a backslash"],
  ["/a%5Cb", "contains a backslash"],
  ["/..", "leaves the root"],
  ["/a/../../b", "leaves the root"],
  ["/%2e%2e/a", "leaves the root"],
  // The path `/b` of the host `a`.
  ["//a/b", "begins with two slashes"],
  ["//", "begins with two slashes"],
  ["///a", "begins with two slashes"],
  ["/%2Fa/b", "begins with two slashes"],
  ["/%2F", "begins with two slashes"],
  ["/x/..//a/b", "begins with two slashes"],
  ["/.//a/b", "begins with two slashes"],
  ["//x/../a/b", "begins with two slashes"],
  ["/a/..;/b", WITH_PARAMETERS],
  ["/a/.;x/b", WITH_PARAMETERS],
  ["/a/..%3b/b", WITH_PARAMETERS],
  ["/a/%2e.%3Bx/b", WITH_PARAMETERS],
  ["/a/;/../b", WITH_PARAMETERS],
  ["/a/;x=1/../b", WITH_PARAMETERS],
  ["/a/%3bx=1/../b", WITH_PARAMETERS],
  ["/a/;", WITH_PARAMETERS],
  ["/a%2F;x/b", WITH_PARAMETERS],
  // Windows ignores dots and spaces at the end.
  ["/a/.../b", LIKE_DOTS],
  ["/a/..%20/b", LIKE_DOTS],
  ["/a/.%20/b", LIKE_DOTS],
  ["/a/..::$DATA/b", LIKE_DOTS],
  ["/a/..(S(x))/b", LIKE_DOTS],
  ["/a/..c", LIKE_DOTS],
  ["/a/%20/../b", "has a segment of spaces"],
  ["/a/%20%2e/../b", "has a segment of spaces"],
  ["/a/%C2%A0/../b", "has a segment of spaces"],
  // A folder that the text after its prefix is appended to.
  ["/a../b", LIKE_DOTS],
  ["/a b", "contains a space that is not percent-encoded"],
  ["/a/\uff0e\uff0e/b", LOOKS_LIKE_ANOTHER],
  ["/a/..%ef%bc%8fb", LOOKS_LIKE_ANOTHER],
  ["/a/%e2%80%a5/b", LOOKS_LIKE_ANOTHER],
  ["/a%e2%88%95b", LOOKS_LIKE_ANOTHER],
  ["/%25u002e", "is percent-encoded twice"],
  ["/a%2F..%2Fb", "has a dot segment next to an encoded slash"],
  ["/a/..%2Fb", "has a dot segment next to an encoded slash"],
  ["/a%2Fb/../c", "has a dot segment next to an encoded slash"],
  ["/a//../b", "has a dot segment after an empty segment"],
  ["/a/%EF%BF%BD", "is not valid UTF-8"],
  ["/a/\ufffd", "is not valid UTF-8"],
  ["/a/\ud800", "is not valid UTF-8"],
];

describe("normalPath()", () => {
  test.each(NORMAL)("of %j is %j", (raw, path) => {
    expect(normalPath(raw)).toEqual({ ok: true, path });
  });

  test.each(DOUBTFUL)("of %j is %j, of which every server reads %j", (raw, path, alike) => {
    expect(normalPath(raw)).toEqual({ ok: true, path, doubtfulFrom: alike.length });
    expect(path.startsWith(alike)).toBe(true);
  });

  test.each(AMBIGUOUS)("of %j does not exist: it %s", (raw, reason) => {
    expect(normalPath(raw)).toEqual({ ok: false, reason });
  });

  test.each(NORMAL)("of %j is in normal form itself", (_, path) => {
    expect(normalPathOfRule(path.replaceAll(/[?#]/g, "x"))).toEqual({ ok: true, path: path.replaceAll(/[?#]/g, "x") });
  });
});

describe("normalPathOfRule()", () => {
  test.each([
    ["/100%", "/100%"],
    ["/a b/é", "/a b/é"],
    ["/%61", "/a"],
  ])("of %j is %j", (path, normal) => {
    expect(normalPathOfRule(path)).toEqual({ ok: true, path: normal });
  });

  test("of a path with dot segments is the path that they lead to", () => {
    expect(normalPathOfRule("/a/../b")).toMatchObject({ ok: true, path: "/b" });
  });
});
