import { describe, expect, test } from "bun:test";
import { compareReleases, isRelease } from "./release.ts";

describe("compareReleases()", () => {
  test("orders releases by number, and candidates before their release", () => {
    const inOrder = ["v0.9.0", "v1.2.3-rc.2", "v1.2.3-rc.10", "v1.2.3", "1.2.4+build.7", "v1.9.0", "v1.10.0", "v2.0.0"];
    expect(inOrder.toReversed().toSorted(compareReleases)).toEqual(inOrder);
    expect(compareReleases("v1.2.3", "1.2.3")).toBe(0);
  });
});

describe("isRelease()", () => {
  test.each([
    ["v1.2.3", true],
    ["1.2.3-rc.1", true],
    ["", false],
    ["main", false],
    ["v1.2", false],
  ])("of %p is %p", (text, expected) => {
    expect(isRelease(text)).toBe(expected);
  });
});
