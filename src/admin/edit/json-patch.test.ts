import { describe, expect, test } from "bun:test";
import { jsonPatch, PatchError } from "./json-patch.ts";

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
