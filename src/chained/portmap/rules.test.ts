import { describe, expect, test } from "bun:test";
import { chainsOf, rulesOf } from "./rules.ts";
import { RULES_PER_CHAIN } from "./table.ts";

describe("rulesOf()", () => {
  test.each([4, 6] as const)("has in family %p as many rules per chain as ADD counts", (family) => {
    const counts = new Map<string, number>();
    for (const { chain } of rulesOf(family)) counts.set(chain, (counts.get(chain) ?? 0) + 1);
    expect([...counts]).toEqual(RULES_PER_CHAIN[family].map(([chain, count]) => [chain, count]));
    const names = chainsOf(family).map(({ name }) => name);
    for (const chain of counts.keys()) expect(names).toContain(chain);
  });
});
