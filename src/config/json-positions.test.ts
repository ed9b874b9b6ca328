import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { locateJson } from "./json-positions.ts";

const TEXT = `{
  "name": "pods",
  "plugins": [
    { "type": "a" },
    { "type": "b", "ipam": { "pools": ["x", "y"] }, "Mtu": 1 }
  ]
}
`;

function find(path: readonly (string | number)[]): string {
  const places = locateJson(TEXT);
  if (!places.ok) return places.reason;
  const { line, column } = places.find(path);
  return `${line}:${column}`;
}

describe("locateJson()", () => {
  test.each([
    [[], "1:1"],
    [["name"], "2:11"],
    [["plugins", 1], "5:5"],
    [["plugins", 1, "ipam", "pools", 1], "5:45"],
    [["plugins", 1, "mtu"], "5:60"],
    [["plugins", 0, "missing"], "4:5"],
    [["missing", "inside"], "1:1"],
  ])("finds %p", (path, place) => {
    expect(find(path)).toBe(place);
  });

  test.each([
    ["", "1:1"],
    ["{", "1:2"],
    ['{"a" 1}', "1:6"],
    ['{"a": 1,}', "1:9"],
    ["{'a': 1}", "1:2"],
    ['{"a": "x\n"}', "1:7"],
    ['{\n  "a": 01\n}', "2:8"],
    ['{"a": 1} x', "1:10"],
    ["[1 2]", "1:4"],
    ['{"a": "\\x"}', "1:7"],
    ["\ufeff{}", "1:1"],
  ])("finds the syntax error in %p", (text, place) => {
    const places = locateJson(text);

    expect(places.ok).toBe(false);
    if (!places.ok) expect(`${places.position.line}:${places.position.column}`).toBe(place);
  });

  test("finds names that occur more than once in their object, and the last position", () => {
    const places = locateJson('{"a":1,"b":[{"c":1,"c":2,"c":3},{"c":1}],\n"a":2,"A":1,"d":{"a":1}}');

    expect(places).toMatchObject({
      ok: true,
      repeated: [
        { path: ["b", 0, "c"], position: { line: 1, column: 30 } },
        { path: ["a"], position: { line: 2, column: 5 } },
      ],
    });
  });

  test("refuses extremely deep nesting", () => {
    expect(locateJson("[".repeat(100_000))).toMatchObject({ ok: false, position: { line: 1, column: 502 } });
  });

  test("agrees with JSON.parse on what is JSON", () => {
    const nearly = fc
      .tuple(fc.json(), fc.nat(200), fc.constantFrom("", ",", '"', "}", "0", "e", "\\", "\n", "null"))
      .map(([json, at, noise]) => `${json.slice(0, at)}${noise}${json.slice(at)}`);
    fc.assert(
      fc.property(nearly, (text) => {
        expect(locateJson(text).ok).toBe(parses(text));
      }),
      { numRuns: 500 },
    );
  });
});

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
