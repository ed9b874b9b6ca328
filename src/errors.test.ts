import { describe, expect, test } from "bun:test";
import { ERROR_TABLE, PluginError } from "./errors.ts";

describe("ERROR_TABLE", () => {
  test("gives every kind a code of its own", () => {
    const codes = Object.values(ERROR_TABLE).map((row) => row.code);

    expect(new Set<number>(codes).size).toBe(codes.length);
  });
});

describe("PluginError", () => {
  test("carries the CNI code of its kind", () => {
    expect(new PluginError("config-invalid", "Cannot read it").cniCode).toBe(7);
  });
});
