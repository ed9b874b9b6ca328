import { describe, expect, test } from "bun:test";
import { NestingError, parseJson } from "./parse-json.ts";

function nested(levels: number, opening = "[", closing = "]"): string {
  return `${opening.repeat(levels)}1${closing.repeat(levels)}`;
}

describe("parseJson()", () => {
  test.each([
    ["500 lists inside each other", nested(500)],
    ["many lists side by side", `[${Array(5_000).fill("[{}]").join(",")}]`],
    ["brackets in a string", JSON.stringify("[".repeat(50_000))],
  ])("parses %s", (_, text) => {
    expect(parseJson(text)).toEqual(JSON.parse(text));
  });

  test.each([
    ["501 lists inside each other", nested(501)],
    ["50,000 lists inside each other", nested(50_000)],
    ["50,000 objects inside each other", nested(50_000, '{"a":', "}")],
  ])("rejects %s", (_, text) => {
    expect(() => parseJson(text)).toThrow(NestingError);
  });

  test("rejects what is not JSON", () => {
    expect(() => parseJson("{")).toThrow(SyntaxError);
  });
});
