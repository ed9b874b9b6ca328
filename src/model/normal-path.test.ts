/** The cases of docs/policy.md. */
import { describe, expect, test } from "bun:test";
import { normalPath, normalPathOfRule } from "./normal-path.ts";

const NORMAL: readonly (readonly [string, string])[] = [
  ["/", "/"],
  ["/a/b", "/a/b"],
  ["/a/", "/a/"],
  ["/a.b/..c/...", "/a.b/..c/..."],
  ["/.well-known/x", "/.well-known/x"],
  // The query is not compared.
  ["/a?b=/../c#d", "/a"],
  ["/?", "/"],
  // Percent-encoding is decoded, once.
  ["/%61", "/a"],
  ["/%C3%A9", "/é"],
  ["/é", "/é"],
  ["/a%20b", "/a b"],
  ["/100%25", "/100%"],
  ["/a%3Fb%23c", "/a?b#c"],
  ["/a%2Fb", "/a/b"],
  ["/a%2f%2Fb", "/a/b"],
  // Empty segments.
  ["//", "/"],
  ["//a///b//", "/a/b/"],
  // Dot segments.
  ["/.", "/"],
  ["/a/./b", "/a/b"],
  ["/a/.", "/a/"],
  ["/a/../b", "/b"],
  ["/a/..", "/"],
  ["/a/b/..", "/a/"],
  ["/a/b/../../c", "/c"],
  ["/a/%2e%2E/b", "/b"],
  ["/a/.%2e/b", "/b"],
  ["/a/..//b", "/b"],
  ["/a;x=1/b", "/a;x=1/b"],
];

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
  ["/a/..;/b", "has a dot segment with parameters"],
  ["/a/.;x/b", "has a dot segment with parameters"],
  ["/a/..%3b/b", "has a dot segment with parameters"],
  ["/a%2F..%2Fb", "has a dot segment next to an encoded slash"],
  ["/a/..%2Fb", "has a dot segment next to an encoded slash"],
  ["/a%2Fb/../c", "has a dot segment next to an encoded slash"],
  ["/a//../b", "has a dot segment after an empty segment"],
  ["/a/\ufffd", "is not valid UTF-8"],
  ["/a/\ud800", "is not valid UTF-8"],
];

describe("normalPath()", () => {
  test.each(NORMAL)("of %j is %j", (raw, path) => {
    expect(normalPath(raw)).toEqual({ ok: true, path });
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
    ["/%61", "/a"],
    ["/a/../b", "/b"],
  ])("of %j is %j", (path, normal) => {
    expect(normalPathOfRule(path)).toEqual({ ok: true, path: normal });
  });
});
