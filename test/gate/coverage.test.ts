import { describe, expect, test } from "bun:test";
import { coverageProblems } from "../../scripts/docs/coverage-problems.ts";
import { SPEC_CLAUSES } from "../../scripts/docs/spec-clauses.ts";

const FILES: Readonly<Record<string, string>> = {
  "src/a.ts": "",
  "src/config/schema.test.ts": 'test("reads it", () => {})',
  "src/a.test.ts": 'test("prefers the pod", () => {})',
};
const TEST = '`src/a.test.ts > "prefers"`';
const problemsOf = (...rows: string[]) =>
  coverageProblems(rows.join("\n"), [{ id: "rule-1", words: "says so" }], { read: (path) => FILES[path] });

describe("coverageProblems()", () => {
  test.each([
    `| \`rule-1\` | says so | \`src/a.ts\` | ${TEST} | done | |`,
    `| \`rule-1\` | \`says\` so | \`src/a.ts\` | ${TEST} | done | |`,
    `| \`rule-1\` | says so | \`src/a.ts\` | ${TEST} | otherwise | for a reason |`,
    "| `rule-1` | says so | | | not yet | it is hard |",
  ])("accepts %s", (row) => {
    expect(problemsOf(row)).toEqual([]);
  });

  test.each([
    ["a clause without a row", "", "no row"],
    ["other words than those of the clause", "| `rule-1` | says that | | | not yet | it is hard |", 'says "says so"'],
    ["a clause that is not done without a remark", "| `rule-1` | says so | | | not yet | |", "without what is missing"],
    ["a done row without a test", "| `rule-1` | says so | `src/a.ts` | | done | |", "done without a test"],
    ["a done row without code", `| \`rule-1\` | says so | | ${TEST} | done | |`, "done without code"],
    [
      "a clause that is read otherwise without a reason",
      `| \`rule-1\` | says so | \`src/a.ts\` | ${TEST} | otherwise | |`,
      "without a reason",
    ],
    [
      "a clause that is read otherwise without a test",
      "| `rule-1` | says so | `src/a.ts` | | otherwise | for a reason |",
      "without a test",
    ],
    [
      "a done row whose field is only accepted",
      '| `rule-1` | says so | `src/a.ts` | `src/config/schema.test.ts > "reads it"` | done | |',
      "of the schema",
    ],
    ["code that is gone", `| \`rule-1\` | says so | \`src/b.ts\` | ${TEST} | done | |`, "no such code"],
    ["a test that is gone", '| `rule-1` | says so | `src/a.ts` | `src/b.test.ts > "x"` | done | |', "no such test"],
    ["a source file named as test", '| `rule-1` | says so | `src/a.ts` | `src/a.ts > "x"` | done | |', "no such test"],
    ["a file without a title", "| `rule-1` | says so | `src/a.ts` | `src/a.test.ts` | done | |", "its title"],
    ["a title that is gone", '| `rule-1` | says so | `src/a.ts` | `src/a.test.ts > "x"` | done | |', "in its title"],
    ["an unknown state", "| `rule-1` | says so | | | soon | |", "none of"],
    [
      "a clause that is not in the specification",
      "| `rule-1` | says so | | | not yet | it is hard |\n| `rule-2` | | | | not yet | it is hard |",
      "no such clause",
    ],
    [
      "a clause that is there twice",
      "| `rule-1` | says so | | | not yet | it is hard |\n| `rule-1` | says so | | | not yet | it is hard |",
      "more than one row",
    ],
  ])("reports %s", (_, page, words) => {
    expect(problemsOf(page)).toEqual([expect.stringContaining(words)]);
  });
});

describe("SPEC_CLAUSES", () => {
  test("numbers the clauses of a rule by letters; a single one has the ID of its rule", () => {
    const idsOf = (rule: RegExp) => SPEC_CLAUSES.map(({ id }) => id).filter((id) => rule.test(id));
    expect(idsOf(/^service-6/)).toEqual(["service-6.a", "service-6.b"]);
    expect(idsOf(/^errors-3/)).toEqual(["errors-3"]);
  });

  test("has every clause once, with its words", () => {
    const ids = SPEC_CLAUSES.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(SPEC_CLAUSES.filter(({ words }) => words === "")).toEqual([]);
  });
});
