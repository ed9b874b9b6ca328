import { describe, expect, test } from "bun:test";
import { formatTable } from "./table.ts";

describe("formatTable()", () => {
  test("makes each column as wide as its widest cell, and leaves no space at the end", () => {
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

  test("keeps a row on its line, and the terminal as it is", () => {
    expect(formatTable(["A", "B"], [["a\nb\tc", "\u001b[31m\u009bé"]])).toBe(
      "A         B\na\\nb\\tc   \\u001b[31m\\u009bé\n",
    );
  });
});
