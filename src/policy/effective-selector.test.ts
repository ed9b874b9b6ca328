import { describe, expect, test } from "bun:test";
import { identity } from "../identity.ts";
import { canonicalSelector, entitySelector, policySelector } from "./effective-selector.ts";

const { labelPrefix } = identity;

describe("policySelector()", () => {
  test("adds the namespace of the policy", () => {
    expect(policySelector({ selector: "app == 'a'", namespace: "red" })).toBe(
      `app == "a" && ${labelPrefix}namespace == "red"`,
    );
  });

  test("selects everything without any criterion", () => {
    expect(policySelector({})).toBe("all()");
    expect(policySelector({ selector: "  " })).toBe("all()");
    expect(policySelector({ selector: "all()" })).toBe("all()");
  });

  test("rewrites the selectors of namespaces and service accounts to inherited labels", () => {
    expect(policySelector({ namespaceSelector: "env == 'x'", serviceAccountSelector: "role in {'b', 'a'}" })).toBe(
      'pcns.env == "x" && pcsa.role in {"a", "b"}',
    );
  });

  test.each([
    ["all()", `has(${labelPrefix}namespace)`],
    ["global()", `!has(${labelPrefix}namespace)`],
    ["!global()", `has(${labelPrefix}namespace)`],
    ["global() || env == 'x'", `!has(${labelPrefix}namespace) || pcns.env == "x"`],
  ])("understands %p as a namespace selector", (namespaceSelector, text) => {
    expect(policySelector({ namespaceSelector })).toBe(text);
  });

  test("means any service account by all()", () => {
    // Also after "all()" was read as a selector of labels.
    canonicalSelector("all()");
    expect(policySelector({ serviceAccountSelector: "all()" })).toBe(`has(${labelPrefix}serviceaccount)`);
  });
});

describe("entitySelector()", () => {
  test("is absent if the rule does not select by labels", () => {
    expect(entitySelector({ nets: ["10.0.0.0/8"] }, "red")).toBeUndefined();
    expect(entitySelector({ selector: " " }, "red")).toBeUndefined();
  });

  test("is restricted to the namespace of the policy, unless the rule has a namespace selector", () => {
    expect(entitySelector({ selector: "has(app)" }, "red")).toBe(`has(app) && ${labelPrefix}namespace == "red"`);
    expect(entitySelector({ selector: "has(app)", namespaceSelector: "all()" }, "red")).toBe(
      `has(app) && has(${labelPrefix}namespace)`,
    );
    expect(entitySelector({ selector: "has(app)" }, undefined)).toBe("has(app)");
  });

  test("restricts a rule with nothing but a notSelector to the namespace too", () => {
    expect(entitySelector({ notSelector: "has(app)" }, "red")).toBe(`${labelPrefix}namespace == "red"`);
    expect(entitySelector({ notSelector: "has(app)" }, undefined)).toBeUndefined();
  });

  test("selects service accounts by name", () => {
    expect(entitySelector({ serviceAccounts: { names: ["b", "a"] } }, undefined)).toBe(
      `${labelPrefix}serviceaccount in {"a", "b"}`,
    );
  });

  test("keeps values with quotes", () => {
    expect(entitySelector({ selector: `app == "it's"` }, undefined)).toBe(`app == "it's"`);
    expect(entitySelector({ selector: `app == 'say "a"'` }, undefined)).toBe(`app == 'say "a"'`);
  });
});
