import { describe, expect, test } from "bun:test";
import { unifiedDiff } from "./unified-diff.ts";

const diff = (before: string, after: string) => unifiedDiff(before, after, { before: "a", after: "b" });
const numbers = (count: number) => Array.from({ length: count }, (_, index) => `${index + 1}\n`).join("");

describe("unifiedDiff()", () => {
  test("is empty for equal texts", () => {
    expect(diff("a\nb\n", "a\nb\n")).toBe("");
  });

  test.each([
    ["", "a\n", "@@ -0,0 +1 @@\n+a\n"],
    ["a\n", "", "@@ -1 +0,0 @@\n-a\n"],
    ["a\nb\nc\n", "a\nx\nc\n", "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n"],
    ["a\nb\nc\nd\n", "b\nc\nx\nd\n", "@@ -1,4 +1,4 @@\n-a\n b\n c\n+x\n d\n"],
    [numbers(20), numbers(20).replace("10\n", "ten\n"), "@@ -7,7 +7,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n"],
  ])("from %j to %j", (before, after, expected) => {
    expect(diff(before, after)).toBe(`--- a\n+++ b\n${expected}`);
  });

  test("has a hunk for each group of changes", () => {
    const after = numbers(40).replace("\n5\n", "\nfive\n").replace("\n30\n", "\n");

    expect(diff(numbers(40), after).match(/^@@.*@@$/gm)).toEqual(["@@ -2,7 +2,7 @@", "@@ -27,7 +27,6 @@"]);
  });

  test("of very different long texts is still quick", () => {
    const started = performance.now();
    const long = Array.from({ length: 20_000 }, (_, index) => `line ${index}\n`).join("");

    expect(diff(long, numbers(20_000)).split("\n")).toHaveLength(40_004);
    expect(performance.now() - started).toBeLessThan(10_000);
  });

  test("of long texts with too many changes leaves out the lines that are equal at the beginning and at the end", () => {
    const text = (line: string) => `${numbers(10)}${line.repeat(3_000)}${numbers(10)}`;
    const [removed, added] = ["-old\n".repeat(3_000), "+new\n".repeat(3_000)];

    expect(diff(text("old\n"), text("new\n"))).toBe(
      `--- a\n+++ b\n@@ -8,3006 +8,3006 @@\n 8\n 9\n 10\n${removed}${added} 1\n 2\n 3\n`,
    );
  });
});
