import { describe, expect, test } from "bun:test";
import { isNewEnough } from "./go-version.ts";

const MODULE = "module parts.invalid/example\n\ngo 1.26.0\n";

describe("isNewEnough()", () => {
  test.each([
    ["go version go1.26.0 linux/amd64", true],
    ["go version go1.26 linux/amd64", true],
    ["go version go1.26.8 linux/arm64", true],
    ["go version go1.27rc1 linux/amd64", true],
    ["go version go1.25.9 linux/amd64", false],
    ["go version go1.19.8 linux/amd64", false],
    ["", false],
  ])("%p: %p", (version, isEnough) => {
    expect(isNewEnough(version, MODULE)).toBe(isEnough);
  });
});
