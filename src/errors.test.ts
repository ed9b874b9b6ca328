import { describe, expect, test } from "bun:test";
import { cniErrorOf, ERROR_TABLE, ForeignError, PluginError } from "./errors.ts";

describe("ERROR_TABLE", () => {
  test("gives every kind its own code", () => {
    const codes = Object.values(ERROR_TABLE).map((row) => row.code);

    expect(new Set<number>(codes).size).toBe(codes.length);
  });
});

describe("PluginError", () => {
  test("has the CNI code of its kind", () => {
    expect(new PluginError("config-invalid", "Cannot read it").cniCode).toBe(7);
  });

  test.each([
    ["resource-exists", "no"],
    ["resource-missing", "no"],
    ["resource-changed", "after reading again"],
    ["datastore-unavailable", "later"],
  ] as const)("says of %s whether another attempt is worthwhile: %s", (kind, retry) => {
    expect(new PluginError(kind, "Cannot write it").retry).toBe(retry);
  });
});

describe("cniErrorOf()", () => {
  test.each([
    [new PluginError("io-failure", "Cannot read", { details: "why" }), { code: 5, msg: "Cannot read", details: "why" }],
    [new ForeignError(777, "theirs", "why"), { code: 777, msg: "theirs", details: "why" }],
    [new RangeError("too deep"), { code: 999, msg: "too deep", details: "RangeError" }],
    [new Error(""), { code: 999, msg: "Error", details: "Error" }],
    ["text", { code: 999, msg: "text", details: "" }],
    [undefined, { code: 999, msg: "undefined", details: "" }],
  ])("turns %p into what the caller learns", (failure, expected) => {
    expect(cniErrorOf(failure)).toEqual(expected);
  });
});
