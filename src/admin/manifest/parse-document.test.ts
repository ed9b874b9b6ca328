import { describe, expect, test } from "bun:test";
import { parseDocument } from "./parse-document.ts";

describe("parseDocument()", () => {
  test.each([
    [
      "spec:\n  nets: [\n    10.0.0.0/8\n]\n  nets: [ 0.0.0.0/0 ]\n",
      "line 13, column 1: indent the closing bracket further",
    ],
    ["a: 1\nb: ,x\na: 2\n", 'line 11, column 4: a value must not begin with ","; write it in quotes'],
  ])("refuses %j, in which a key is repeated and which is not valid, although it can be read", (text, says) => {
    expect(Bun.YAML.parse(text)).toBeObject();
    expect(parseDocument({ text, line: 10 })).toEqual({ ok: false, problems: [`it is not valid YAML: ${says}`] });
  });

  test("accepts a closing bracket at the left where no key can be repeated", () => {
    const text = "spec:\n  nets: [\n    10.0.0.0/8\n]\n";

    expect(parseDocument({ text, line: 1 })).toMatchObject({ ok: true, value: { spec: { nets: ["10.0.0.0/8"] } } });
  });
});
