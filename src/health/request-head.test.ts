import { describe, expect, test } from "bun:test";
import { parseRequest } from "./request-head.ts";

const parsed = (text: string) => {
  const request = parseRequest(text, 100);
  if (request.kind === "page") return `${request.isHead ? "HEAD " : ""}${request.path}`;
  return request.kind === "refused" ? request.status : request.kind;
};

describe("parseRequest()", () => {
  test.each([
    ["GET /liveness HTTP/1.1\r\nHost: localhost:9099\r\n\r\n", "/liveness"],
    ["GET /liveness HTTP/1.0\r\n\r\n", "/liveness"],
    ["GET /metrics?x=/readiness#y HTTP/1.1\n\n", "/metrics"],
    ["GET http://localhost:9099/metrics HTTP/1.1\r\n\r\n", "/metrics"],
    ["GET http://localhost:9099 HTTP/1.1\r\n\r\n", "/"],
    ["HEAD /liveness HTTP/1.1\r\n\r\n", "HEAD /liveness"],
    ["GET /liveness HTTP/1.1\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n", "/liveness"],
    [`GET /liveness HTTP/1.1\r\n\r\n${"x".repeat(200)}`, "/liveness"],
    ["POST /liveness HTTP/1.1\r\n\r\n", 405],
    ["GET /liveness\r\n\r\n", 400],
    ["GET /liveness HTTP/2.0\r\n\r\n", 400],
    ["\u0016\u0003\u0001\r\n\r\n", 400],
    ["", "incomplete"],
    ["GET /liveness HTTP/1.1\r\nHost: local", "incomplete"],
    [`GET /liveness HTTP/1.1\r\nx: ${"y".repeat(100)}`, 431],
    [`GET /liveness HTTP/1.1\r\nx: ${"y".repeat(100)}\r\n\r\n`, 431],
  ])("reads %j", (text, expected) => {
    expect<string | number>(parsed(text)).toBe(expected);
  });
});
