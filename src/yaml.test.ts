import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { formatYaml } from "./yaml.ts";

/** Strings that some parser of YAML 1.1 or 1.2 reads as a number, a boolean, a time, null, or YAML syntax. */
const TRICKY = [
  ..."y Y n N yes Yes YES no No NO on On ON off Off OFF true True TRUE false False null Null NULL ~ = <<".split(" "),
  ..."1 -1 +1 0 007 0o7 0b1 -0b1 0x1F 1_000 1e3 1.5 1. .5 -.5 1.5e+3 685_230.15 .inf -.INF .nan .NaN".split(" "),
  ..."12:30:45 1:30 190:20:30.15 02:42:11:11:00:02 2001-12-14 2001-12-14t21:59:43.10-05:00".split(" "),
  ..."2001-12-14T21:59:43Z 1,000 - -- --- ... ? : , # & * ! | > % @ ` [ ] { } ' \"".split(" "),
  ...["", " ", " a", "a ", "a: b", "a:", "a #b", "- a", "? a", ": a", "!!str a", "&a b", "*a", "2001-12-14 21:59:43"],
  ...["a\nb", "a\n", "\ta", "\u0000", "\u007f", "\u0085", "\u2028", "\ufeffa", "\u00a0", "tab\there", "\\", "\r"],
];
const PLAIN = [
  ..."a blue /etc/x all() 10.0.0.0/24 10.0.0.1 fd00::/64 v1.2.3 nodes n1 yesterday nullable True-ish http://a:1/b#c".split(
    " ",
  ),
  ...["rack == 'a'", 'rack != "b" && has(x)', "a, b", "it's", "x {y} [z]", "a#b", "a:b", "vendor.org/v3", "a\\nb"],
];

describe("formatYaml()", () => {
  test("writes maps and lists in block style", () => {
    const value = {
      kind: "List",
      none: undefined,
      items: [{ a: 1, b: [], c: {}, d: null, e: { f: [true, [1, "x"], [{ g: "h" }]] } }, "last", []],
    };

    expect(formatYaml(value)).toBe(
      [
        "kind: List",
        "items:",
        "  - a: 1",
        "    b: []",
        "    c: {}",
        "    d: null",
        "    e:",
        "      f:",
        "        - true",
        "        - - 1",
        "          - x",
        "        - - g: h",
        "  - last",
        "  - []",
        "",
      ].join("\n"),
    );
  });

  test.each(TRICKY)("quotes strings that could be read as another type: %j", (text) => {
    const written = formatYaml({ a: text });

    expect(written).toMatch(/^a: ".*"\n$/);
    expect(Bun.YAML.parse(written)).toEqual({ a: text });
    expect(formatYaml({ [text]: text })).toMatch(/^".*": ".*"\n$/);
    expect(Bun.YAML.parse(formatYaml({ [text]: text }))).toEqual({ [text]: text });
  });

  test.each(PLAIN)("does not quote unambiguous strings: %j", (text) => {
    expect(formatYaml({ a: text })).toBe(`a: ${text}\n`);
    expect(Bun.YAML.parse(formatYaml({ [text]: text }))).toEqual({ [text]: text });
  });

  test("writes text of several lines as it is", () => {
    const value = { a: '{\n  "b": 1\n}\n', list: ["x: y\n# z\n"] };
    expect(formatYaml(value)).toBe(
      ["a: |", "  {", '    "b": 1', "  }", "list:", "  - |", "      x: y", "      # z", ""].join("\n"),
    );
    expect(Bun.YAML.parse(formatYaml(value))).toEqual(value);
  });

  test("keeps blank lines and spaces at the ends of lines in such text", () => {
    const value = { a: { b: "x: 1  \n\n   \n  y\n \nlast\n" }, list: ["{{- if x }}\n\n  - y \n"] };

    expect(formatYaml(value)).toContain("b: |\n");
    expect(formatYaml(value)).toContain("- |\n");
    expect(Bun.YAML.parse(formatYaml(value))).toEqual(value);
  });

  test("writes numbers in a form that every parser reads", () => {
    expect(formatYaml([1e21, 1.5e-9, -2, 0.5])).toBe("- 1.0e+21\n- 1.5e-9\n- -2\n- 0.5\n");
  });

  test("is read again as the same value", () => {
    const text = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.string(),
      fc.constantFrom(...TRICKY, ...PLAIN, "__proto__"),
      fc.array(fc.constantFrom(...TRICKY, ...PLAIN, "  x"), { maxLength: 3 }).map((lines) => `${lines.join("\n")}\n`),
    );
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { depthSize: "small" },
        text,
        fc.boolean(),
        fc.integer(),
        fc.constant(null),
        tie("list"),
        tie("map"),
      ),
      list: fc.array(tie("value"), { maxLength: 4 }),
      // Bun also merges a quoted "<<".
      map: fc.dictionary(
        text.filter((name) => name !== "<<"),
        tie("value"),
        { maxKeys: 4 },
      ),
    }));
    fc.assert(fc.property(value, (each) => expect(Bun.YAML.parse(formatYaml(each))).toEqual(each)));
  });
});
