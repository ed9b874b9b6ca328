import { describe, expect, test } from "bun:test";
import { crdObjects, operatorCrdObjects } from "./definitions.ts";

/** Those that can be the name of a field. */
const RESERVED = ["as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop"].concat([
  "package",
  "namespace",
  "return",
  "void",
  "while",
]);

describe("the rules of the definitions", () => {
  test("spell fields that are reserved words of CEL so that every API server compiles them", () => {
    const text = JSON.stringify([...crdObjects(), ...operatorCrdObjects()]);
    const rules = [...text.matchAll(/"rule":("(?:[^"\\]|\\.)*")/g)].map(([, rule = ""]) => String(JSON.parse(rule)));

    expect(rules.length).toBeGreaterThan(400);
    expect(rules.filter((rule) => RESERVED.some((word) => rule.includes(`.${word})`)))).toEqual([]);
  });
});
