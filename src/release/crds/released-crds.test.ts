import { describe, expect, test } from "bun:test";
import { servedBy } from "../older-servers.ts";
import { allCrdObjects, crdObjects } from "./released-crds.ts";

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
    const text = JSON.stringify(allCrdObjects());
    const rules = [...text.matchAll(/"rule":("(?:[^"\\]|\\.)*")/g)].map(([, rule = ""]) => String(JSON.parse(rule)));

    expect(rules.length).toBeGreaterThan(400);
    const reserved = new RegExp(`\\.(${RESERVED.join("|")})\\b`);
    const withoutTexts = rules.map((rule) => rule.replaceAll(/'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/g, "''"));
    expect(withoutTexts.filter((rule) => reserved.test(rule))).toEqual([]);
  });

  const OF_CIDRS = ["isIP(", "ip(", "isCIDR(", "cidr("];
  test.each([
    ["v1.24.17", [], 0],
    ["v1.25.0", ['messageExpression":', 'fieldPath":', "findAll(", "split(", ...OF_CIDRS], 340],
    ["v1.28.0", ['messageExpression":', "findAll(", "split(", ...OF_CIDRS], 340],
    ["v1.30.0", OF_CIDRS, 340],
    ["v1.31.0", [], 400],
    ["v1.32.0", [], 440],
  ])("leave %s nothing that it cannot compile, and everything else", (version, missing, atLeast) => {
    const all = allCrdObjects();
    const text = JSON.stringify(servedBy(version, all));
    const used = missing.filter((name) => text.includes(name));

    expect(used).toEqual([]);
    expect(/cidr\([^=]*\) == cidr\(/.test(text)).toBe(version === "v1.32.0");
    const kept = text.match(/"rule":/g)?.length ?? 0;
    expect(atLeast === 0 ? kept === 0 : kept >= atLeast).toBe(true);
  });

  test("keep the block size of a pool from v1.25 on", () => {
    const pools = [...crdObjects()].filter(({ metadata }) => metadata.name.startsWith("ippools."));
    const rulesOf = (version: string) => JSON.stringify(servedBy(version, pools));

    expect(pools).toHaveLength(1);
    expect(rulesOf("v1.25.0")).toContain("self.blockSize == oldSelf.blockSize");
    expect(rulesOf("v1.30.0")).toContain("self.blockSize == oldSelf.blockSize");
  });
});
