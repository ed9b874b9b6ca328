import { describe, expect, test } from "bun:test";
import { PlanEntries } from "./plan-entries.ts";

describe("PlanEntries", () => {
  test("the first source in the order of the text wins, whatever the order of events", () => {
    for (const sources of [
      ["a", "b", "c"],
      ["c", "a", "b"],
      ["b", "c", "a"],
    ]) {
      const claims = new PlanEntries<string>();
      for (const source of sources) claims.replace(source, [["key", `of ${source}`]]);
      expect(claims.entries.get("key")).toBe("of a");
      claims.replace("a", []);
      expect(claims.entries.get("key")).toBe("of b");
      claims.replace("c", []);
      expect(claims.entries.get("key")).toBe("of b");
      claims.replace("b", [["other", "of b"]]);
      expect([...claims.entries]).toEqual([["other", "of b"]]);
    }
  });

  test("reports what differs from the last report only", () => {
    const claims = new PlanEntries<{ readonly value: number }>();
    claims.replace("a", [
      ["one", { value: 1 }],
      ["two", { value: 2 }],
    ]);
    expect([...claims.takeChanged()]).toEqual(["one", "two"]);

    claims.replace("a", [["one", { value: 1 }]]);
    claims.replace("b", [["two", { value: 2 }]]);
    expect([...claims.takeChanged()]).toEqual([]);

    claims.replace("b", []);
    expect([...claims.takeChanged()]).toEqual(["two"]);
  });

  test("an entry with the same value stays the same object", () => {
    const claims = new PlanEntries<{ readonly value: number }>();
    claims.replace("a", [["one", { value: 1 }]]);
    const first = claims.entries.get("one");
    claims.replace("a", [["one", { value: 1 }]]);
    expect(claims.entries.get("one")).toBe(first as { value: number });
  });
});
