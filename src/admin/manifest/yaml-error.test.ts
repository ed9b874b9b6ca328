import { describe, expect, test } from "bun:test";
import { locateYamlError } from "./yaml-error.ts";

function locate(text: string): string {
  try {
    Bun.YAML.parse(text);
    return "valid";
  } catch (cause) {
    const { line, column, reason } = locateYamlError(text, String((cause as Error).message));
    return `${line}:${column}: ${reason}`;
  }
}

const POOL = "kind: IPPool\nmetadata:\n  name: blue\n";

describe("locateYamlError()", () => {
  test.each([
    ["a quote", `${POOL}spec:\n  cidr: "10.0.0.0/16\n  disabled: true\n`, '5:9: the quotation mark " that opens'],
    ["a single quote", `a: 'b\nc: d\n`, "1:4: the quotation mark ' that opens here is not closed"],
    ["a brace", `${POOL}spec: {cidr: 10.0.0.0/16\n`, '4:7: the bracket "{" that opens here is not closed'],
    ["a bracket on a later line", `${POOL}spec:\n  uses: [a,\n    b\n`, '5:9: the bracket "[" that opens here'],
    ["the inner one of two brackets", `a: {b: [c, d}\n`, '1:13: "}" closes the bracket "[" of line 1, column 8'],
    ["nothing", "a: }\n", '1:4: "}" closes no bracket'],
    ["a bracket in a list", `- a\n- {b: c\n- d\n`, '2:3: the bracket "{" that opens here is not closed'],
  ])("names what is open: %s", (_, text, says) => {
    expect(locate(text)).toStartWith(says);
  });

  test.each([
    ["a tab", `${POOL}spec:\n\tcidr: 10.0.0.0/16\n`, "5:1: a tab in the indentation; use spaces"],
    ["a second colon", `${POOL}spec:\n  cidr: a: b\n`, '5:10: a second ":" in one line'],
    ["a reserved character", "a: b\nc: @d\n", '2:4: a value must not begin with "@"'],
    ["an alias without an anchor", "a: b\nc: *d\n", '2:4: alias "*d" has no anchor "&d" before it'],
    ["a wrong indentation", "a:\n    b: c\n  d: e\n", "3:3: its indentation matches no line above it"],
    ["text in brackets at the left", "a: {\nb: 1}\n", "2:1: indent what is in the brackets further"],
    ["a tab in brackets", "a: [\n\tb\n]\n", "2:1: a tab in the indentation; use spaces"],
  ])("explains %s", (_, text, says) => {
    expect(locate(text)).toStartWith(says);
  });

  test.each([
    ["a key after a list", "a:\n  - b\n  c: d\n", "3:3: "],
    ["a list after keys", "a: 1\n- b\n", "2:1: "],
    ["a bracket too many", "a: {b: c}}\n", "1:10: "],
    ["a word after a quoted one", "a: b\nc: 'it's'\n", "2:8: "],
    ["a colon without a space", "a: b\nc:d\ne: f\n", "2:1: "],
    ["a wrong escape sequence", 'a: b\nc: "\\q"\n', "2:5: "],
    ["a comma too many", "a: [b,,c]\n", "1:7: "],
    ["an item indented less than the others", "a:\n  - b: 1\n    c: 2\n   d: 3\n", "4:4: "],
    ["a line with a carriage return", 'a: b\r\nc: "d\r\n', "2:4: "],
    ["text that is not closed is found before a later mistake", `a: "b\nc: {\n`, "1:4: "],
    ["a closed bracket before the mistake", "a: [b, {c: d}]\ne: f: g\n", "2:5: "],
    ["brackets inside plain text", 'a: b[0]{"\nc: @d\n', "2:4: "],
  ])("finds the line: %s", (_, text, place) => {
    expect(locate(text)).toStartWith(place);
  });

  test("finds a mistake at the end of a long document in time", () => {
    const lines = Array.from({ length: 4_000 }, (_, index) => `key${index}: value`);
    const started = performance.now();

    expect(locate([...lines, 'last: "open', ""].join("\n"))).toStartWith("4001:7: ");
    expect(performance.now() - started).toBeLessThan(10_000);
  });

  test.each([
    ["brackets in brackets", "{a: ".repeat(3_000), "1:801: more than 200 brackets are open here"],
    ["aliases", `a: &a 1\nb:\n${"- *a\n".repeat(5_000)}- *c\n`, '5003:3: alias "*c" has no anchor "&c" before it'],
  ])("finds a mistake among thousands of %s in time", (_, text, says) => {
    const started = performance.now();

    expect(locate(text)).toStartWith(says);
    expect(performance.now() - started).toBeLessThan(5_000);
  });
});
