import { describe, expect, test } from "bun:test";
import { splitDocuments } from "./documents.ts";

describe("splitDocuments()", () => {
  test.each([
    ["", []],
    ["# nothing\n\n", []],
    ["a: 1\n", [[1, 1]]],
    ["---\na: 1\n", [[1, 1]]],
    ["# of the file\n---\na: 1\n", [[1, 1]]],
    ["%YAML 1.2\n---\na: 1\n", [[1, 1]]],
    [
      "\ufeff---\r\na: 1\r\n---\r\nb: 2\r\n",
      [
        [1, 1],
        [2, 3],
      ],
    ],
    [
      "a: 1\n---\n---\nb: 2\n",
      [
        [1, 1],
        [2, 2],
        [3, 3],
      ],
    ],
    [
      "a: 1\n--- {b: 2}\n--- # comment\n",
      [
        [1, 1],
        [2, 2],
        [3, 3],
      ],
    ],
    [
      "a: 1\n...\n# between\n---\nb: 2\n...\n",
      [
        [1, 1],
        [2, 3],
      ],
    ],
    [
      "a: 1\n...\nb: 2\n",
      [
        [1, 1],
        [2, 3],
      ],
    ],
    ["a: |\n  ---\n  text\n ---\n---x: 1\n", [[1, 1]]],
  ] as const)("of %j finds %p", (text, expected) => {
    expect(splitDocuments(text).map(({ number, line }) => [number, line])).toEqual(expected as never);
  });

  test("returns each part as complete YAML", () => {
    const text = "# of the file\n---\na: 1\n---\n- b\n- c\n... # end\n\nd: |\n  x\n---\n\n";

    expect(splitDocuments(text).map((document) => Bun.YAML.parse(document.text))).toEqual([
      { a: 1 },
      ["b", "c"],
      { d: "x\n" },
      null,
    ]);
  });
});
