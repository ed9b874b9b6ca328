import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { quoted } from "../quote.ts";
import { formatSelector } from "./format.ts";
import { formatSelectorError, parseSelector } from "./parse.ts";
import { type Labels, type Selector, selects } from "./selector.ts";

function parsed(text: string): Selector {
  const result = parseSelector(text);
  if (!result.ok) throw new Error(formatSelectorError(result.error));
  return result.selector;
}

const LABELS = ["a", "b", "app.kubernetes.io/name", "in", "not", "all", "has", "constructor", "0-_/."];
const VALUES = ["", "x", "xy", "yx", 'double"quote', "single'quote", " && ", "all()", "ü"];

const anyLabels: fc.Arbitrary<Labels> = fc
  .dictionary(fc.constantFrom(...LABELS), fc.constantFrom(...VALUES))
  .map((map) => ({ ...map }));

const { selector: anySelector } = fc.letrec<{ selector: Selector }>((tie) => {
  const label = fc.constantFrom(...LABELS);
  const value = fc.constantFrom(...VALUES);
  const operands = fc.array(tie("selector"), { minLength: 0, maxLength: 3 });
  return {
    selector: fc.oneof(
      { maxDepth: 4, depthSize: "small" },
      fc.constantFrom<Selector>({ kind: "all" }, { kind: "global" }),
      fc.record({ kind: fc.constant("has" as const), label }),
      fc.record({
        kind: fc.constant("compare" as const),
        operator: fc.constantFrom(
          "==" as const,
          "!=" as const,
          "contains" as const,
          "starts with" as const,
          "ends with" as const,
        ),
        label,
        value,
      }),
      fc.record({
        kind: fc.constant("member" as const),
        operator: fc.constantFrom("in" as const, "not in" as const),
        label,
        values: fc.array(value, { maxLength: 3 }),
      }),
      fc.record({ kind: fc.constant("not" as const), operand: tie("selector") }),
      fc.record({ kind: fc.constantFrom("and" as const, "or" as const), operands }),
    ),
  };
});

/** The same meaning, told another way: regular expressions and sets over label pairs. */
function oracle(selector: Selector, labels: Labels): boolean {
  const pairs = new Map(Object.entries(labels));
  const literal = (text: string) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
  switch (selector.kind) {
    case "all":
    case "global":
      return true;
    case "has":
      return [...pairs.keys()].includes(selector.label);
    case "compare": {
      const value = literal(selector.value);
      const patterns = {
        "==": `^${value}$`,
        "!=": `^${value}$`,
        contains: value,
        "starts with": `^${value}`,
        "ends with": `${value}$`,
      };
      const actual = pairs.get(selector.label);
      const matches = actual !== undefined && new RegExp(patterns[selector.operator]).test(actual);
      return selector.operator === "!=" ? !matches : matches;
    }
    case "member": {
      const actual = pairs.get(selector.label);
      const isIn = actual !== undefined && new Set(selector.values).has(actual);
      return selector.operator === "in" ? isIn : !isIn;
    }
    case "not":
      return oracle(selector.operand, labels) === false;
    case "and":
      return !selector.operands.some((operand) => !oracle(operand, labels));
    case "or":
      return !selector.operands.every((operand) => !oracle(operand, labels));
  }
}

describe("parseSelector()", () => {
  const table: [string, string][] = [
    ["", "all()"],
    [" \t ", "all()"],
    ["all()", "all()"],
    ["all( )", "all()"],
    ["global()", "global()"],
    ["has( a )", "has(a)"],
    ["a=='x'", 'a == "x"'],
    ['a  ==\t"x\'"', 'a == "x\'"'],
    ["a == '\"'", "a == '\"'"],
    ["a != ''", 'a != ""'],
    ["a contains 'x'", 'a contains "x"'],
    ["a starts with 'x'", 'a starts with "x"'],
    ["a starts \t with'x'", 'a starts with "x"'],
    ["a startswith 'x'", 'a starts with "x"'],
    ["a ends with 'x'", 'a ends with "x"'],
    ["a endswith 'x'", 'a ends with "x"'],
    ["a in {'y','x', 'y'}", 'a in {"x", "y"}'],
    ["a in{}", "a in {}"],
    ["a not in {'x'}", 'a not in {"x"}'],
    ["a notin {'x'}", 'a not in {"x"}'],
    ["!a == 'x'", '!a == "x"'],
    ["!!has(a)", "has(a)"],
    ["!!!has(a)", "!has(a)"],
    ["!(has(a) && has(b))", "!(has(a) && has(b))"],
    ["((has(a)))", "has(a)"],
    ["has(a) && has(b) || has(c)", "has(a) && has(b) || has(c)"],
    ["has(a) && (has(b) || has(c))", "has(a) && (has(b) || has(c))"],
    ["(has(a) || has(b)) || has(c)", "has(a) || has(b) || has(c)"],
    ["(has(a) && has(b)) || has(c)", "has(a) && has(b) || has(c)"],
    ["in in {'in'}", 'in in {"in"}'],
    ["all == 'x' && not not in {'y'}", 'all == "x" && not not in {"y"}'],
    ["example.com/role-1_x == 'y'", 'example.com/role-1_x == "y"'],
  ];
  test.each(table)("reads %p as %s", (text, canonical) => {
    expect(formatSelector(parsed(text))).toBe(canonical);
  });

  const errors: [string, number, string][] = [
    ["a", 1, "the end"],
    ["a == ", 5, "the end"],
    ["a == b", 5, '"b"'],
    ["a = 'x'", 2, '"="'],
    ["a == 'x", 7, "the end"],
    ["a == 'x' &", 9, '"&"'],
    ["a == 'x' &&", 11, "the end"],
    ["a == 'x' has(b)", 9, '"has"'],
    ["a == 'x')", 8, '")"'],
    ["(a == 'x'", 9, "the end"],
    ["has()", 4, '")"'],
    ["has('a')", 4, 'the string "a"'],
    ["has(a", 5, "the end"],
    ["all(a)", 4, '"a"'],
    ["none()", 0, '"none"'],
    ["a in 'x'", 5, 'the string "x"'],
    ["a in {'x',}", 10, '"}"'],
    ["a in {'x' 'y'}", 10, 'the string "y"'],
    ["a in {x}", 6, '"x"'],
    ["a not 'x'", 6, 'the string "x"'],
    ["a starts 'x'", 9, 'the string "x"'],
    ["a constructor 'x'", 2, '"constructor"'],
    ["'a' == 'x'", 0, 'the string "a"'],
    ["a == 'x'\n", 8, '"\n"'],
    ["!", 1, "the end"],
    ["ü == 'x'", 0, '"ü"'],
    ["||", 0, '"||"'],
    [`${"a".repeat(513)} == 'x'`, 0, quoted("a".repeat(513))],
    [`has(${"a".repeat(513)})`, 4, quoted("a".repeat(513))],
    [`${"(".repeat(101)}all()${")".repeat(101)}`, 100, '"("'],
  ];
  test.each(errors)("refuses %p at position %d", (text, position, found) => {
    const result = parseSelector(text);

    expect(result.ok ? "a selector" : { position: result.error.position, found: result.error.found }).toEqual({
      position,
      found,
    });
  });

  test("refuses malicious text instead of exhausting the stack", () => {
    expect(parseSelector("(".repeat(1_000_000)).ok).toBe(false);
    expect(parseSelector(`${"!".repeat(1_000_001)}all()`)).toEqual({
      ok: true,
      selector: { kind: "not", operand: { kind: "all" } },
    });
  });

  test("never throws, whatever the text, and points into it", () => {
    const piece = fc.constantFrom(
      "a",
      "in",
      "not",
      " ",
      "==",
      "!",
      "(",
      ")",
      "{",
      "}",
      ",",
      "'x'",
      "&&",
      "||",
      "has",
      "all",
      "'",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const text = pieces.join("");
        const result = parseSelector(text);
        if (result.ok) expect(parseSelector(formatSelector(result.selector)).ok).toBe(true);
        else expect(result.error.position).toBeLessThanOrEqual(text.length);
      }),
      { numRuns: 1000 },
    );
  });
});

describe("formatSelector()", () => {
  test("prints text that means the same", () => {
    fc.assert(
      fc.property(anySelector, anyLabels, (selector, labels) => {
        const printed = formatSelector(selector);
        expect(selects(parsed(printed), labels)).toBe(selects(selector, labels));
      }),
      { numRuns: 1000 },
    );
  });

  test("is idempotent: printed text prints as itself", () => {
    fc.assert(
      fc.property(anySelector, (selector) => {
        const printed = formatSelector(selector);
        expect(formatSelector(parsed(printed))).toBe(printed);
      }),
      { numRuns: 1000 },
    );
  });

  test("refuses a value with both kinds of quotes", () => {
    expect(() => formatSelector({ kind: "compare", operator: "==", label: "a", value: `"'` })).toThrow(RangeError);
  });
});

describe("selects()", () => {
  test("agrees with a naive evaluation", () => {
    fc.assert(
      fc.property(anySelector, anyLabels, (selector, labels) =>
        expect(selects(selector, labels)).toBe(oracle(selector, labels)),
      ),
      { numRuns: 1000 },
    );
  });

  //                      label missing, label is ""
  const missing: [string, boolean, boolean][] = [
    ["has(a)", false, true],
    ["!has(a)", true, false],
    ["a == ''", false, true],
    ["a != 'x'", true, true],
    ["a != ''", true, false],
    ["a contains ''", false, true],
    ["a starts with ''", false, true],
    ["a ends with ''", false, true],
    ["a in {''}", false, true],
    ["a in {}", false, false],
    ["a not in {''}", true, false],
    ["a not in {}", true, true],
    ["!a == ''", true, false],
    ["!a contains ''", true, false],
    ["all()", true, true],
    ["!all()", false, false],
  ];
  test.each(missing)("%s without the label: %p, with it empty: %p", (text, absent, empty) => {
    expect(selects(parsed(text), {})).toBe(absent);
    expect(selects(parsed(text), { a: "" })).toBe(empty);
  });

  test("does not treat inherited properties as labels", () => {
    expect(selects(parsed("has(constructor) || toString contains ''"), {})).toBe(false);
  });
});
