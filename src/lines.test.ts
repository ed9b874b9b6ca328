import { describe, expect, test } from "bun:test";
import { type LineRules, linesOf } from "./lines.ts";

async function linesIn(text: string, size: number, rules: LineRules): Promise<readonly string[]> {
  const bytes = new TextEncoder().encode(text);
  const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
    bytes.subarray(index * size, (index + 1) * size),
  );
  const body = (async function* () {
    yield* pieces;
  })();
  return await Array.fromAsync(linesOf(body, rules));
}

describe("linesOf()", () => {
  const text = '{"a":"é"}\n\n{"b":2}\n{"c":3}';

  test.each([1, 2, 7, 100])("is the same however the body is cut: pieces of %i bytes", async (size) => {
    expect(await linesIn(text, size, { unended: "a line" })).toEqual(['{"a":"é"}', '{"b":2}', '{"c":3}']);
    expect(await linesIn(text, size, { unended: "left out" })).toEqual(['{"a":"é"}', '{"b":2}']);
  });

  test("has none in an empty body", async () => {
    expect(await linesIn("", 1, { unended: "a line" })).toEqual([]);
    expect(await linesIn("\n", 1, { unended: "a line" })).toEqual([]);
  });

  test("does not wait for the end of a line that is too long", async () => {
    const most = { length: 5, failure: () => new Error("too long") };
    expect(await linesIn("12345\n12345\n", 3, { unended: "left out", most })).toEqual(["12345", "12345"]);
    await expect(linesIn("1\n123456", 2, { unended: "left out", most })).rejects.toThrow("too long");
  });
});
