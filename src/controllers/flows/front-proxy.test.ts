import { describe, expect, test } from "bun:test";
import { callerOf, frontProxyOf } from "./front-proxy.ts";

const DATA = {
  "requestheader-client-ca-file": "PEM",
  "requestheader-allowed-names": '["front-proxy-client"]',
  "requestheader-username-headers": '["X-Remote-User"]',
  "requestheader-group-headers": '["X-Remote-Group"]',
  "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]',
};
const VERIFIED = { isVerified: true, commonName: "front-proxy-client" };
const HEADERS = [
  ...["Host", "x", "X-Remote-User", "anna", "x-remote-group", "a, b", "X-Remote-Group", "system:authenticated"],
  ...["X-Remote-Extra-example.org%2fscopes", "one", "X-Remote-Extra-example.org%2Fscopes", "two"],
];

describe("callerOf()", () => {
  const proxy = frontProxyOf(DATA);
  if (proxy === undefined) throw new Error("no front proxy");

  test("reads user, groups and extra fields, each value by itself", () => {
    expect(callerOf(HEADERS, VERIFIED, proxy)).toEqual({
      user: "anna",
      groups: ["a, b", "system:authenticated"],
      extra: { "example.org/scopes": ["one", "two"] },
    });
  });

  test("is nobody without a verified certificate of an allowed name, or without a user", () => {
    for (const peer of [
      { isVerified: false, commonName: "front-proxy-client" },
      { isVerified: true, commonName: "admin" },
      { isVerified: true, commonName: undefined },
    ])
      expect(callerOf(HEADERS, peer, proxy)).toBeUndefined();
    expect(callerOf(["X-Remote-User", ""], VERIFIED, proxy)).toBeUndefined();
    expect(callerOf(["X-Remote-Group", "system:masters"], VERIFIED, proxy)).toBeUndefined();
  });

  test("takes every name that the authority signed if the API server names none", () => {
    const open = frontProxyOf({ ...DATA, "requestheader-allowed-names": "[]" });

    expect(open && callerOf(HEADERS, { isVerified: true, commonName: "any" }, open)?.user).toBe("anna");
  });
});

test("without an authority nobody can be identified", () => {
  for (const data of [undefined, {}, { ...DATA, "requestheader-client-ca-file": " " }])
    expect(frontProxyOf(data)).toBeUndefined();
});
