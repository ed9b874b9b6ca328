import { describe, expect, test } from "bun:test";
import { planFeeds } from "./kinds.ts";

const decode = () => "value";
const table = {
  pods: { prefix: "/product/resources/pods/", decode },
  policies: { prefix: "/product/resources/policies/", decode },
  blocks: { prefix: "/product/ipam/block/", decode },
};
const { pods, policies } = table;

describe("planFeeds()", () => {
  test.each([
    ["several kinds at the path they share", table, "/product/"],
    ["neighbours at their parent", { pods, policies }, "/product/resources/"],
    ["a single kind at its own prefix", { pods }, "/product/resources/pods/"],
    ["kinds that share nothing at the root of everything", { pods, other: { prefix: "other/", decode } }, ""],
  ])("watches %s", (_, kinds, watched) => {
    expect(planFeeds<Record<string, string>>(kinds, "together").map((plan) => plan.watched)).toEqual([watched]);
  });

  test("watches each kind separately if requested", () => {
    expect(planFeeds(table, "per kind").map(({ watched, kinds }) => [watched, [...kinds.keys()]])).toEqual([
      ["/product/resources/pods/", ["pods"]],
      ["/product/resources/policies/", ["policies"]],
      ["/product/ipam/block/", ["blocks"]],
    ]);
  });

  test("refuses kinds that would share a key", () => {
    const inside = { prefix: "/product/resources/pods/special/", decode };

    expect(() => planFeeds({ pods, inside }, "together")).toThrow(RangeError);
    expect(() => planFeeds({ pods, same: pods }, "per kind")).toThrow(RangeError);
  });
});
