import { describe, expect, test } from "bun:test";
import { deniedGroups } from "./flow-groups.ts";
import { sampleFlow } from "./sample-flow.ts";

describe("deniedGroups()", () => {
  test("puts the pods of one owner together, and counts what has no record of its own", () => {
    const { source } = sampleFlow();
    const groups = deniedGroups([
      sampleFlow({ id: "a", start: 5 }),
      sampleFlow({ id: "b", start: 9, suppressed: 3, source: { ...source, name: "web-2" } }),
      sampleFlow({ id: "c", start: 7, verdict: "allowed" }),
    ]);

    expect(groups).toHaveLength(1);
    expect(groups[0]).toMatchObject({
      source: "shop/web",
      destination: "shop/db-0",
      port: "5432/tcp",
      count: 5,
      lastAt: 9,
    });
    expect(groups[0]?.rule).toBe("shop/db ingress[0]");
    expect(groups[0]?.example.id).toBe("b");
  });

  test("keeps rules apart, the most recent first", () => {
    const byTier = [{ point: "workload ingress", verdict: "deny", rule: "tier default ingress default" }] as const;
    const groups = deniedGroups([
      sampleFlow({ id: "a", start: 1 }),
      sampleFlow({ id: "b", start: 2, decisions: [...byTier] }),
      sampleFlow({ id: "c", start: 3 }),
    ]);

    expect(groups.map(({ rule, count }) => [rule, count])).toEqual([
      ["shop/db ingress[0]", 2],
      ["end of tier default, ingress", 1],
    ]);
  });
});
