import { describe, expect, test } from "bun:test";
import { goVersionProblem } from "./go-version.ts";

const MODULE = "module parts.invalid/example\n\ngo 1.26.0\n";

describe("goVersionProblem()", () => {
  test.each([
    ["go version go1.26.0 linux/amd64", undefined],
    ["go version go1.26 linux/amd64", undefined],
    ["go version go1.26.8 linux/arm64", undefined],
    ["go version go1.27rc1 linux/amd64", undefined],
    ["go version go1.19.8 linux/amd64", "needs Go 1.26.0 or newer to be built, and Go 1.19.8 is installed"],
    [undefined, "needs Go 1.26.0 or newer to be built"],
  ])("%p: %p", (version, problem) => {
    expect(goVersionProblem(MODULE, version)).toBe(problem);
  });
});
