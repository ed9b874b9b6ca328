import { describe, expect, test } from "bun:test";
import { counted } from "./counted.ts";

describe("counted()", () => {
  test.each([
    [0, "block", undefined, "0 blocks"],
    [1, "block", undefined, "1 block"],
    [2, "block", undefined, "2 blocks"],
    [1n, "address", "addresses", "1 address"],
    [2n ** 64n, "address", "addresses", "18446744073709551616 addresses"],
  ])("counts %p of %s", (count, one, many, text) => {
    expect(counted(count, one, many)).toBe(text);
  });
});
