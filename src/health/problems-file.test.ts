import { describe, expect, test } from "bun:test";
import { readProblems, writeProblems } from "./problems-file.ts";

describe("problems for node status", () => {
  const many = Array.from({ length: 103 }, (_, index) => `problem ${index}`);

  test("are read as they were written", () => {
    expect(readProblems(writeProblems(many.slice(0, 100)))).toEqual(many.slice(0, 100));
  });

  test("beyond a hundred are counted: a tenant could hide those of others", () => {
    const shown = readProblems(writeProblems(many));

    expect([shown.length, shown.at(-2), shown.at(-1)]).toEqual([
      101,
      "problem 99",
      "3 more, which are in the log of the agent",
    ]);
  });

  test("of another version are none", () => {
    expect(readProblems("{}")).toEqual([]);
  });
});
