import { describe, expect, test } from "bun:test";
import { arePodsRouted } from "./routing-facts.ts";

describe("arePodsRouted()", () => {
  test("needs routing that is enabled, and a plan that was applied", () => {
    const facts = { isEnabled: true, routes: 0, peers: 0, problems: 0, appliedAt: 1 };
    expect(arePodsRouted(facts)).toBe(true);
    expect(arePodsRouted({ ...facts, appliedAt: undefined })).toBe(false);
    expect(arePodsRouted({ ...facts, isEnabled: false })).toBe(false);
  });
});
