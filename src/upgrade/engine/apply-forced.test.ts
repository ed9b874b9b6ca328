import { describe, expect, test } from "bun:test";
import { isContained } from "./apply-forced.ts";

const deployment = (env: readonly object[]) => ({
  spec: { containers: [{ name: "agent", env }], tolerations: [{ operator: "Exists" }] },
});

describe("isContained()", () => {
  test.each([
    ["fields of others", { a: 1 }, { a: 1, b: 2 }, true],
    ["another value", { a: 1 }, { a: 2 }, false],
    ["a missing field", { a: { b: 1 } }, {}, false],
    ["what is empty is not stored", { a: {}, b: [], c: null }, {}, true],
    [
      "variables of others",
      deployment([{ name: "A", value: "1" }]),
      deployment([{ name: "B" }, { name: "A", value: "1" }]),
      true,
    ],
    [
      "another value of a variable",
      deployment([{ name: "A", value: "1" }]),
      deployment([{ name: "A", value: "2" }]),
      false,
    ],
    [
      "another member of a list",
      { rules: [{ verbs: ["get"] }] },
      { rules: [{ verbs: ["get"] }, { verbs: ["list"] }] },
      false,
    ],
    ["another order", { verbs: ["get", "list"] }, { verbs: ["list", "get"] }, false],
  ])("%s", (_, wanted, live, expected) => {
    expect(isContained(wanted, live)).toBe(expected);
  });
});
