import { describe, expect, test } from "bun:test";
import { brokenConnection, failureOfConnection, failureOfResponse } from "./failure.ts";

const withCode = (code: string) => Object.assign(new Error("words"), { code });

describe("failureOfConnection()", () => {
  test.each([
    ["ECONNREFUSED", "connect", "none"],
    ["EHOSTUNREACH", "connect", "none"],
    ["ENOTFOUND", "resolve", "none"],
    ["EAI_AGAIN", "resolve", "none"],
    ["UNABLE_TO_VERIFY_LEAF_SIGNATURE", "TLS", "none"],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "TLS", "none"],
    ["CERT_HAS_EXPIRED", "TLS", "none"],
    ["ECONNRESET", "request", "unknown"],
    ["EPIPE", "request", "unknown"],
    ["unknown code", "request", "unknown"],
  ] as const)("takes %s for a failure at stage %s with effect %s", (code, stage, effect) => {
    expect(failureOfConnection(withCode(code)).diagnosis).toMatchObject({ stage, effect });
  });

  test("reports an unknown effect after a time limit", () => {
    const timeout = new DOMException("The operation timed out.", "TimeoutError");

    expect(failureOfConnection(timeout).diagnosis).toMatchObject({ stage: "request", effect: "unknown", cure: "wait" });
  });
});

describe("brokenConnection()", () => {
  test.each(["ECONNRESET", "EHOSTUNREACH", "ERR_SSL_BAD_RECORD_MAC"])(
    "does not take %s for proof that a request was not begun",
    (code) => {
      expect(brokenConnection(withCode(code))).toMatchObject({ message: "words", diagnosis: { effect: "unknown" } });
    },
  );
});

describe("failureOfResponse()", () => {
  test.each([
    [14, "etcdserver: no leader", "request", "unknown", "wait"],
    [14, "etcdserver: request timed out, possibly due to previous leader failure", "request", "unknown", "wait"],
    [8, "etcdserver: mvcc: database space exceeded", "request", "none", "repair"],
    [16, "etcdserver: invalid auth token", "authenticate", "none", "new token"],
    [3, "etcdserver: authentication failed, invalid user ID or password", "authenticate", "none", "repair"],
    [3, "etcdserver: user name is empty", "authenticate", "none", "repair"],
    [7, "etcdserver: permission denied", "request", "none", "repair"],
    [3, "etcdserver: request is too large", "request", "none", "repair"],
    [8, "grpc: received message larger than max (3000343 vs. 2097152)", "request", "none", "repair"],
    [3, "something that will not change", "request", "none", "repair"],
    [14, "something that will pass", "request", "unknown", "wait"],
  ] as const)("takes code %d %j for stage %s, effect %s, cure %s", (code, words, stage, effect, cure) => {
    expect(failureOfResponse(code, words).diagnosis).toMatchObject({ stage, effect, cure });
  });
});
