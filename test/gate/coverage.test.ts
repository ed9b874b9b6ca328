import { describe, expect, test } from "bun:test";
import { coverageProblems } from "../../scripts/docs/coverage-problems.ts";

const FILES: Readonly<Record<string, string>> = {
  "src/a.ts": "",
  "src/config/schema.test.ts": "",
  "src/a.test.ts": 'test("prefers the pod", () => {})',
};
const problemsOf = (...rows: string[]) =>
  coverageProblems(rows.join("\n"), ["rule-1"], { read: (path) => FILES[path] });

describe("coverageProblems()", () => {
  test.each([
    "| `rule-1` | words | `src/a.ts` | `src/a.test.ts` | done |",
    '| `rule-1` | words | `src/a.ts` | `src/a.test.ts > "prefers"` | done |',
    "| `rule-1` | words | | | not yet |",
  ])("accepts %s", (row) => {
    expect(problemsOf(row)).toEqual([]);
  });

  test.each([
    ["a rule without a row", "", "no row"],
    ["a done row without a test", "| `rule-1` | words | `src/a.ts` | | done |", "done without a test"],
    ["a done row without code", "| `rule-1` | words | | `src/a.test.ts` | done |", "done without code"],
    [
      "a done row whose field is only accepted",
      "| `rule-1` | words | `src/a.ts` | `src/config/schema.test.ts` | done |",
      "of the schema",
    ],
    ["code that is gone", "| `rule-1` | words | `src/b.ts` | `src/a.test.ts` | done |", "no such code"],
    ["a test that is gone", "| `rule-1` | words | `src/a.ts` | `src/b.test.ts` | done |", "no such test"],
    ["a source file named as test", "| `rule-1` | words | `src/a.ts` | `src/a.ts` | done |", "no such test"],
    ["a title that is gone", '| `rule-1` | words | `src/a.ts` | `src/a.test.ts > "x"` | done |', "in its title"],
    ["an unknown state", "| `rule-1` | words | | | soon |", "neither"],
    [
      "a rule that is not in the specification",
      "| `rule-1` | | | | not yet |\n| `rule-2` | | | | not yet |",
      "no such rule",
    ],
    ["a rule told twice", "| `rule-1` | | | | not yet |\n| `rule-1` | | | | not yet |", "more than one row"],
  ])("reports %s", (_, page, words) => {
    expect(problemsOf(page)).toEqual([expect.stringContaining(words)]);
  });
});
