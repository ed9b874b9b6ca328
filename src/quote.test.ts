import { describe, expect, test } from "bun:test";
import { quoted } from "./quote.ts";

describe("quoted()", () => {
  test.each([
    ["a string", "a\nb", '"a\\nb"'],
    ["a number", 7, "7"],
    ["an object", { a: [1, null] }, '{"a":[1,null]}'],
    ["a bigint", 2n ** 64n, "18446744073709551616"],
    ["an absent value", undefined, "undefined"],
  ])("quotes %s as JSON", (_, value, text) => {
    expect(quoted(value)).toBe(text);
  });

  test.each([
    ["a string", "x".repeat(5_000)],
    ["a string of characters that JSON escapes", "\u0000".repeat(5_000)],
    ["a list", Array.from({ length: 5_000 }, (_, index) => index)],
  ])("quotes at most 200 characters of %s", (_, value) => {
    expect(quoted(value).length).toBe(200);
  });

  test("keeps the end of a long path", () => {
    expect(quoted(`/${"a/".repeat(300)}config.json`)).toEndWith('a/config.json"');
  });

  test("does not cut a secret in half", () => {
    const url = `${"x".repeat(120)} https://root:${"s3cret".repeat(20)}@host/`;

    expect(quoted(url)).not.toContain("s3cret");
  });

  test("quotes what JSON cannot express without failing", () => {
    let deep: unknown = [];
    for (let depth = 0; depth < 50_000; depth += 1) deep = [deep];

    expect(quoted(deep)).toBe("a value that cannot be shown");
  });
});
