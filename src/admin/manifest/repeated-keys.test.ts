import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { canRepeatKeys, findRepeatedKeys, locateYaml } from "./repeated-keys.ts";

function found(...lines: readonly string[]): readonly string[] {
  return (findRepeatedKeys(lines.join("\n")) ?? []).map(({ path, line }) => `${path.join(".")} in line ${line}`);
}

describe("locateYaml()", () => {
  const text = [
    "# a policy",
    "kind: NetworkPolicy",
    "metadata: {name: a, labels: {x: y}}",
    "spec:",
    "  ingress:",
    "  - action: Allow",
    "    source:",
    "      nets: [10.0.0.0/8]",
    "  - destination:",
    "      ports:",
    "      - 80",
    "    action: Deny",
    '  "order": 5',
    "  note: |",
    "    action: none",
  ].join("\n");
  const find = locateYaml(text);

  test.each([
    [[], 2],
    [["kind"], 2],
    [["metadata", "labels", "x"], 3],
    [["spec", "ingress", 0, "action"], 6],
    [["spec", "ingress", 0, "source", "nets", 0], 8],
    [["spec", "ingress", 1], 9],
    [["spec", "ingress", 1, "destination", "ports", 0], 11],
    [["spec", "ingress", 1, "action"], 12],
    [["spec", "order"], 13],
    [["spec", "ingress", 7, "action"], 5],
    [["spec", "missing"], 4],
    [["nothing"], 2],
  ])("%j is on line %d", (path, line) => {
    expect(find(path)).toBe(line);
  });

  test("is the first line with content if the text cannot be parsed", () => {
    expect(locateYaml("---\n# x\na: [\n")(["a"])).toBe(3);
  });
});

describe("findRepeatedKeys()", () => {
  test.each([
    [["a: 1", "b: 2", "a: 3"], ["a in line 3"]],
    [["---", "a: 1", "'a': 3", '"a" : 4'], ["a in line 4"]],
    [["spec:", "  cidr: 1", "  # note", "", "  cidr: 2"], ["spec.cidr in line 5"]],
    [["items:", "- spec:", "    cidr: 1", "- spec:", "    cidr: 1", "    cidr: 2"], ["items.1.spec.cidr in line 6"]],
    [["-", "  a: 1", "-", "  a: 2", "  a: 3"], ["1.a in line 5"]],
    [["- - a: 1", "    a: 2", "  - a: 3"], ["0.0.a in line 2"]],
    [
      ["spec:", "  a: 1", "  a: 2", "spec:", "  b: 1", "  b: 2"],
      ["spec in line 4", "spec.a in line 3", "spec.b in line 6"],
    ],
    [["a: &x", "  b: 1", "  b: 2", "c: *x"], ["a.b in line 3"]],
    [["a: |", "  a: 1", "  a: 2", "a: 3"], ["a in line 4"]],
    [["__proto__: 1", "constructor: 1", "__proto__: 2"], ["__proto__ in line 3"]],
    [["a.b/c: x", "k: [1,", "  2]", "a.b/c: http://y"], ["a.b/c in line 4"]],
    [["spec: {cidr: 1, cidr: 2}"], ["spec.cidr in line 1"]],
    [
      ["spec: {", '  "a":1, b: {c: 1},', "  'a': {b: 2, b: 3}}", "d: it's {"],
      ["spec.a in line 3", "spec.a.b in line 3"],
    ],
    [
      ["- {a: x, b: 'it''s, {', a: \"}\"}", "- [{c: 1}, {c: 2, c: 3}]"],
      ["0.a in line 1", "1.1.c in line 2"],
    ],
    [["a: {b: 1}", "c: {b: 1, d: [{b: 2}, b], b: 3}"], ["c.b in line 2"]],
    [["b: [?]", "a: 1", "a: 2"], ["a in line 3"]],
    [['{x: "y: \u2028#", a: 1, a: 2}'], ["a in line 1"]],
    [['{x: "y:', ' # z", a: 1, a: 2}'], ["a in line 2"]],
    [["{x: 'y: q: \"', a: 1, a: 2, z: 'w: \"", "'}"], ["a in line 1"]],
    [['k: ["y', ' # z", a: 1]', "b: 1", "b: 2"], ["b in line 4"]],
    [["a: 1\ra: 2"], ["a in line 2"]],
  ])("of %j finds %p", (lines, expected) => {
    expect(found(...lines)).toEqual(expected);
    expect(canRepeatKeys(lines.join("\n"), Bun.YAML.parse(lines.join("\n")))).toBe(true);
  });

  test.each([
    [["a: |", "  b: 1", "  b: 2"]],
    [["a: >-", "   b: 1", "", "   b: 2", "c: 1"]],
    [['a: "x', "  b: 1", '  b: 2"']],
    [["- a: 1", "- a: 2", "-  a: 3", "-   b: 1", "    a: 2"]],
    [["a:", "  x: 1", "b:", "  x: 1"]],
    [["a: {", "b: 1,", "c: {", "b: 2}}"]],
    [["base: &base", "  a: 1", "one:", "  <<: *base", "  a: 2"]],
    [["a: 1", "A: 2", "a b: 3", "a#b: 4", "a:b: 5"]],
    [["no: }", "no: {"]],
    [["a: {b: {c: 1}, c: 2}", "d: {c: 1, e: [{c: 1}, {c: 2}]}"]],
    [['a: "{b: 1, b: 2}"', "c: |", "  {d: 1, d: 2}", "e: x {f: 1, f: 2}"]],
    [["a: [b: 1, b: 2]"]],
    [[""]],
  ])("finds nothing in %j", (lines) => {
    expect(found(...lines)).toEqual([]);
  });

  test.each([["spec:\n  nets: [\n    10.0.0.0/8\n]\n  nets: [ 0.0.0.0/0 ]\n"], ["a: 1\nb: ,x\na: 2\n"]])(
    "is undefined for %j, which only the parser of the runtime reads",
    (text) => {
      expect(canRepeatKeys(text, Bun.YAML.parse(text))).toBe(true);
      expect(findRepeatedKeys(text)).toBeUndefined();
    },
  );

  const key = fc.constantFrom(
    "{a",
    "a,",
    "a}",
    "a",
    "b",
    "cidr",
    "a b",
    "- a",
    "a: b",
    "#a",
    "'a'",
    '"a"',
    "1",
    "",
    "<<",
    "a:",
  );
  const text = fc.oneof(key, fc.constantFrom("a: 1\na: 2\n", "- a: 1\n", "x\n\n  b: 2\nb: 3", "|", "{a: 1, a: 2}"));
  const value = fc.letrec((tie) => ({
    any: fc.oneof({ depthSize: "small" }, text, fc.integer(), tie("list"), tie("map")),
    list: fc.array(tie("any"), { maxLength: 3 }),
    map: fc.dictionary(key, tie("any"), { maxKeys: 4 }),
  })).map;

  test("finds nothing in a document without duplicate keys", () => {
    fc.assert(
      fc.property(value, (document) => {
        expect(findRepeatedKeys(Bun.YAML.stringify(document, null, 2))).toEqual([]);
        expect(findRepeatedKeys(Bun.YAML.stringify(document))).toEqual([]);
      }),
    );
  });

  test("finds a key that is added once more to the outermost map", () => {
    fc.assert(
      fc.property(value, (document) => {
        const yaml = Bun.YAML.stringify({ cidr: document, other: document }, null, 2);
        const text = `${yaml}\ncidr: 1\n`;
        const [repeated] = findRepeatedKeys(text) ?? [];

        expect(repeated).toEqual({ path: ["cidr"], line: yaml.split("\n").length + 1 });
        expect(canRepeatKeys(text, Bun.YAML.parse(text))).toBe(true);
      }),
    );
  });
});

describe("canRepeatKeys()", () => {
  test.each([
    [
      "kind: Pool",
      "metadata: {name: a, labels: {x: y, 'a b': \"c\"}}",
      "spec:",
      "  nets: [10.0.0.0/8, fd00::/8]",
      "  list:",
      "  - a: http://b",
    ],
    ['{"a":1,"b":[{"a":2}],"c":{"d":"e"}}'],
    ["# note: a", "a: null", "b:", "  c: '{\"d\":1}'", '  d: "e: \\" f: g"', "  # note: b", "e: ''"],
  ])("is false for %j", (...lines) => {
    expect(canRepeatKeys(lines.join("\n"), Bun.YAML.parse(lines.join("\n")))).toBe(false);
  });

  test.each([
    ["{x, a: 1, a: 2}"],
    ["? a\n: 1\na: 2"],
    ["a: &b {c: 1}\nd: *b\nd: *b"],
    ['{"a":1, "a" :2}'],
    ["{a: 1, a: [], b: []}"],
    ["a: it's\nb: 1\nb: 2\nc: it's"],
    ["a: null\nb: 'x: y'\na: 1"],
  ])("is true for %j", (text) => {
    expect(canRepeatKeys(text, Bun.YAML.parse(text))).toBe(true);
  });
});
