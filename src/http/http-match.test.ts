import { describe, expect, test } from "bun:test";
import { type HttpMatch, matchesHttp, normalRequest } from "./http-match.ts";

describe("matchesHttp()", () => {
  const API: HttpMatch = { methods: ["GET", "HEAD"], paths: [{ exact: "/health" }, { prefix: "/api" }] };

  const cases: readonly (readonly [HttpMatch, string, string, boolean])[] = [
    [{}, "GET", "/", true],
    [{ methods: [], paths: [] }, "BREW", "*", true],
    [{ methods: ["GET"] }, "GET", "/anything", true],
    [{ methods: ["GET"] }, "get", "/", false],
    [{ methods: ["GET"] }, "POST", "/", false],
    [{ methods: ["*"] }, "POST", "/", true],
    [API, "GET", "/health", true],
    [API, "HEAD", "/health?verbose", true],
    [API, "GET", "/health/", false],
    [API, "GET", "/healthy", false],
    [API, "POST", "/health", false],
    [API, "GET", "/api", true],
    [API, "GET", "/api/users", true],
    [API, "GET", "/apix", true],
    [API, "GET", "/%61pi/users", true],
    [API, "GET", "/api//users", true],
    [API, "GET", "/api/x/../users", true],
    [API, "GET", "/api/a%2Fb", true],
    [API, "GET", "/API", false],
    [API, "GET", "/api/../admin", false],
    // Some servers do not resolve dots, merge slashes or decode slashes.
    [API, "GET", "/admin/../api", false],
    [API, "GET", "/./api", false],
    [API, "GET", "/./health", false],
    [{ paths: [{ exact: "/a/b" }, { prefix: "/a/c" }] }, "GET", "/a//b", false],
    [{ paths: [{ exact: "/a/b" }, { prefix: "/a/c" }] }, "GET", "/a/./c", false],
    [{ paths: [{ exact: "/a/b" }, { prefix: "/a/c" }] }, "GET", "/a%2Fb", false],
    [{ paths: [{ prefix: "/a/" }] }, "GET", "/a/b/..", false],
    // Some servers read the first as the name of a host.
    [API, "GET", "//api/admin", false],
    [{ paths: [{ prefix: "/public/" }] }, "GET", "/public/;/../admin", false],
    [API, "GET", "/admin/..%2fapi", false],
    [API, "GET", "/api%00", false],
    // Without paths an ambiguous path is a path like any other.
    [{ methods: ["GET"] }, "GET", "/api%00", true],
    [{ paths: [{ prefix: "/" }] }, "GET", "/api%00", false],
    [{ paths: [{ prefix: "/" }] }, "OPTIONS", "*", false],
  ];

  test.each(cases)("%j matches %s %s: %p", (match, method, path, isMatch) => {
    expect(matchesHttp(match, normalRequest({ method, path }))).toBe(isMatch);
  });
});
