import { describe, expect, test } from "bun:test";
import { parseDocument } from "../manifest/parse-document.ts";
import { jsonPatch } from "./json-patch.ts";
import { PatchError } from "./patch-error.ts";

const TARGET = { metadata: { labels: { "a/b": "x", "c~d": "y" } }, list: [1, 2, 3] };

describe("jsonPatch()", () => {
  test.each([
    [
      { op: "add", path: "/new", value: { a: 1 } },
      { ...TARGET, new: { a: 1 } },
    ],
    [
      { op: "add", path: "/list/1", value: 9 },
      { ...TARGET, list: [1, 9, 2, 3] },
    ],
    [
      { op: "add", path: "/list/-", value: 9 },
      { ...TARGET, list: [1, 2, 3, 9] },
    ],
    [
      { op: "remove", path: "/list/0" },
      { ...TARGET, list: [2, 3] },
    ],
    [
      { op: "remove", path: "/metadata/labels/a~1b" },
      { ...TARGET, metadata: { labels: { "c~d": "y" } } },
    ],
    [
      { op: "replace", path: "/metadata/labels/c~0d", value: "z" },
      { ...TARGET, metadata: { labels: { "a/b": "x", "c~d": "z" } } },
    ],
    [
      { op: "replace", path: "/list/2", value: null },
      { ...TARGET, list: [1, 2, null] },
    ],
    [
      { op: "move", from: "/list/0", path: "/first" },
      { ...TARGET, first: 1, list: [2, 3] },
    ],
    [
      { op: "copy", from: "/list", path: "/other" },
      { ...TARGET, other: [1, 2, 3] },
    ],
    [{ op: "test", path: "/list", value: [1, 2, 3] }, TARGET],
    [
      { op: "add", path: "/__proto__", value: { evil: true } },
      JSON.parse(JSON.stringify(TARGET).replace(/}$/, ',"__proto__":{"evil":true}}')),
    ],
    [{ op: "replace", path: "", value: 5 }, 5],
  ])("%j", (operation, expected) => {
    const before = structuredClone(TARGET);

    expect(JSON.stringify(jsonPatch(TARGET, [operation]))).toBe(JSON.stringify(expected));
    expect(TARGET).toEqual(before);
  });

  test.each([
    [{ op: "replace", path: "/spec", value: 1 }, '"/spec" does not exist'],
    [{ op: "remove", path: "/list/3" }, '"/list/3" does not exist'],
    [{ op: "remove", path: "/list/01" }, '"/list/01" does not exist'],
    [{ op: "remove", path: "/constructor" }, '"/constructor" does not exist'],
    [{ op: "add", path: "/list/9", value: 1 }, '"/list/9" does not exist'],
    [{ op: "add", path: "/a/b", value: 1 }, '"/a" does not exist'],
    [{ op: "add", path: "/list" }, "value: is missing"],
    [{ op: "test", path: "/list/0", value: 2 }, '"/list/0" is 1, not 2'],
    [{ op: "move", from: "/metadata", path: "/metadata/x" }, "into itself"],
    [{ op: "remove", path: "" }, "use delete"],
    [{ op: "merge", path: "/list" }, '"merge" is not an operation'],
    [{ op: "add", path: "list", value: 1 }, 'does not begin with "/"'],
    [{ op: "add", value: 1 }, "path: is missing"],
    ["add", "not an object"],
  ])("refuses %j, and names the operation", (operation, reason) => {
    const fine = { op: "test", path: "/list/0", value: 1 };

    expect(() => jsonPatch(TARGET, [fine, operation])).toThrow(PatchError);
    expect(() => jsonPatch(TARGET, [fine, operation])).toThrow("operation 2: ");
    expect(() => jsonPatch(TARGET, [operation])).toThrow(reason);
  });
});

/** Parsed, as the patch and the resource are: a member "__proto__" is one. */
const patched = (target: string, ...operations: readonly string[]) =>
  jsonPatch(
    JSON.parse(target),
    operations.map((operation) => JSON.parse(operation)),
  );

describe("the examples of RFC 6902, appendix A", () => {
  test.each([
    ["A.1 a member", '{"a":1}', '{"op":"add","path":"/b","value":2}', '{"a":1,"b":2}'],
    ["A.2 an element", '{"l":["a","b"]}', '{"op":"add","path":"/l/1","value":"n"}', '{"l":["a","n","b"]}'],
    ["A.3 a member less", '{"a":1,"b":2}', '{"op":"remove","path":"/a"}', '{"b":2}'],
    ["A.4 an element less", '{"l":["a","n","b"]}', '{"op":"remove","path":"/l/1"}', '{"l":["a","b"]}'],
    ["A.5 another value", '{"a":1,"b":2}', '{"op":"replace","path":"/a","value":"x"}', '{"a":"x","b":2}'],
    [
      "A.6 a value moved",
      '{"from":{"a":1,"b":2},"to":{"c":3}}',
      '{"op":"move","from":"/from/b","path":"/to/d"}',
      '{"from":{"a":1},"to":{"c":3,"d":2}}',
    ],
    ["A.7 an element moved", '{"l":[1,2,3,4]}', '{"op":"move","from":"/l/1","path":"/l/3"}', '{"l":[1,3,4,2]}'],
    ["A.8 a test", '{"a":"x","l":["y",2,"z"]}', '{"op":"test","path":"/l/1","value":2}', '{"a":"x","l":["y",2,"z"]}'],
    ["A.10 an object", '{"a":1}', '{"op":"add","path":"/b","value":{"c":{}}}', '{"a":1,"b":{"c":{}}}'],
    ["A.11 other fields", '{"a":1}', '{"op":"add","path":"/b","value":2,"why":"?"}', '{"a":1,"b":2}'],
    ["A.14 ~01 is ~1", '{"/":9,"~1":10}', '{"op":"test","path":"/~01","value":10}', '{"/":9,"~1":10}'],
    ["A.16 a list at the end", '{"l":["a"]}', '{"op":"add","path":"/l/-","value":["b"]}', '{"l":["a",["b"]]}'],
  ])("%s", (_, target, operation, expected) => {
    expect(JSON.stringify(patched(target, operation))).toBe(expected);
  });

  test.each([
    ["A.9 a test", '{"a":"x"}', '{"op":"test","path":"/a","value":"y"}', '"/a" is "x", not "y"'],
    ["A.12 nothing to add to", '{"a":1}', '{"op":"add","path":"/b/c","value":2}', '"/b" does not exist'],
    ["A.15 numbers and texts", '{"/":9,"~1":10}', '{"op":"test","path":"/~01","value":"10"}', 'is 10, not "10"'],
  ])("%s is refused", (_, target, operation, reason) => {
    expect(() => patched(target, operation)).toThrow(reason);
  });

  test("A.13 a field that is given twice is refused when the patch is read", () => {
    const text = '[{"op":"add","path":"/a","value":1,"op":"remove"}]';

    expect(parseDocument({ text, line: 1 }).ok).toBe(false);
  });
});

describe("what packages of JSON patch do differently", () => {
  test.each(["4", "-1", "01", "1e0", "length", "#0", "", "x"])('"%s" is not a place in a list', (step) => {
    for (const op of ["add", "replace", "remove", "test"]) {
      const operation = JSON.stringify({ op, path: `/l/${step}`, value: 1 });
      expect(() => patched('{"l":[1,2,3]}', operation)).toThrow(`"/l/${step}" does not exist`);
    }
  });

  test.each([
    ['{"op":"remove","path":"/l/-"}', '"/l/-" does not exist'],
    ['{"op":"add","path":"/l/0/x","value":1}', '"/l/0/x" does not exist'],
    ['{"op":"move","from":"/l/0","path":"/l/3"}', '"/l/3" does not exist'],
    ['{"op":"copy","from":"/x","path":"/y"}', '"/x" does not exist'],
    ['{"op":"move","from":"/o","path":"/o/p/q"}', '"/o" cannot be moved into itself'],
    ['{"op":"move","from":"","path":""}', "use delete"],
    ['{"op":"replace","path":"/#o","value":1}', '"/#o" does not exist'],
    ['{"op":"copy","from":"/#o","path":"/x"}', '"/#o" does not exist'],
    ['{"op":"test","path":"/o","value":[]}', '"/o" is {"p":{}}, not []'],
    ['{"op":"test","path":"/o/p","value":[]}', '"/o/p" is {}, not []'],
    ['{"op":"test","path":"/e","value":{}}', '"/e" is [], not {}'],
    ['{"op":"copy","from":"/o"}', "path: is missing"],
    ['{"op":"copy","path":"/o"}', "from: is missing"],
    ['{"op":"add","path":["o"],"value":1}', "path: is missing"],
    ["[]", "it is not an object"],
    ["{}", "op: undefined is not an operation"],
  ])("refuses %s", (operation, reason) => {
    expect(() => patched('{"l":[1,2,3],"o":{"p":{}},"e":[]}', operation)).toThrow(reason);
  });

  test.each(["toString", "constructor", "__proto__", "#o", "01", "-", ""])(
    '"%s" is a member like any other',
    (name) => {
      const path = JSON.stringify(`/o/${name}`);
      const [without, with1, with2] = ['{"o":{}}', `{"o":{"${name}":{"a":1}}}`, `{"o":{"${name}":{"a":1,"b":2}}}`];

      for (const op of ["remove", "replace", "test"]) {
        expect(() => patched(without, `{"op":"${op}","path":${path},"value":1}`)).toThrow("does not exist");
      }
      expect(() => patched(without, `{"op":"add","path":"/o/${name}/b","value":2}`)).toThrow("does not exist");
      expect(JSON.stringify(patched(without, `{"op":"add","path":${path},"value":{"a":1}}`))).toBe(with1);
      expect(JSON.stringify(patched(with1, `{"op":"add","path":"/o/${name}/b","value":2}`))).toBe(with2);
      expect(JSON.stringify(patched(with1, `{"op":"replace","path":${path},"value":5}`))).toBe(`{"o":{"${name}":5}}`);
      expect(JSON.stringify(patched(with1, `{"op":"move","from":${path},"path":"/x"}`))).toBe('{"o":{},"x":{"a":1}}');
      expect(JSON.stringify(patched(with1, `{"op":"remove","path":${path}}`))).toBe(without);
      expect(Object.keys(Object.prototype)).toEqual([]);
    },
  );

  test("what is copied is not shared, and can be copied into itself", () => {
    const copy = '{"op":"copy","from":"/a","path":"/b"}';

    expect(patched('{"a":{}}', copy, '{"op":"add","path":"/b/c","value":1}')).toEqual({ a: {}, b: { c: 1 } });
    expect(patched('{"a":{}}', '{"op":"copy","from":"","path":"/a/whole"}')).toEqual({ a: { whole: { a: {} } } });
  });

  test("what operations change later is changed neither in them nor where their value has it again", () => {
    const inner = { x: 1 };
    const operations = [
      { op: "add", path: "/a", value: { one: inner, two: inner } },
      { op: "replace", path: "/a/one/x", value: 2 },
    ];

    const expected = { a: { one: { x: 2 }, two: { x: 1 } } };
    expect(jsonPatch({}, operations)).toEqual(expected);
    expect(jsonPatch({}, operations)).toEqual(expected);
    expect(inner).toEqual({ x: 1 });
  });

  test("the whole is replaced, and changed further", () => {
    const replace = '{"op":"replace","path":"","value":[]}';

    expect(patched("{}", replace, '{"op":"add","path":"/0","value":1}')).toEqual([1]);
    expect(patched("{}", replace, '{"op":"add","path":"","value":{"a":1}}')).toEqual({ a: 1 });
  });

  test("what is returned has the usual prototypes", () => {
    const target = { list: [{}] };

    expect(jsonPatch(target, []) instanceof Object).toBe(true);
    expect(jsonPatch(target, [{ op: "replace", path: "", value: {} }]) instanceof Object).toBe(true);
  });
});
