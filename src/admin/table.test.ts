import { describe, expect, test } from "bun:test";
import { formatTable } from "./table.ts";

describe("formatTable()", () => {
  test("makes each column as wide as its widest cell, without trailing spaces", () => {
    expect(
      formatTable(
        ["A", "B"],
        [
          ["long", ""],
          ["", "x"],
        ],
      ),
    ).toBe("A      B\nlong\n       x\n");
  });

  test("escapes line breaks and control characters", () => {
    expect(formatTable(["A", "B"], [["a\nb\tc", "\u001b[31m\u009bé"]])).toBe(
      "A         B\na\\nb\\tc   \\u001b[31m\\u009bé\n",
    );
  });
});
