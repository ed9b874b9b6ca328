import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { proofSize } from "../../test/support/proof-size.ts";
import { MOST_RULE_NUMBERS } from "./rule-label.ts";
import { RuleNumbers } from "./rule-numbers.ts";

const NONE: ReadonlySet<string> = new Set();

describe("RuleNumbers", () => {
  test("a new comment gets the lowest free number, and keeps it", () => {
    const numbers = new RuleNumbers([
      [1, "a"],
      [3, "c"],
    ]);

    expect([numbers.add("b"), numbers.add("d")]).toEqual([2, 4]);
    expect(["a", "b", "c", "d", "e"].map((comment) => numbers.find(comment))).toEqual([1, 2, 3, 4, undefined]);
  });

  test("numbers below the lowest one are not given, but known ones stay", () => {
    const numbers = new RuleNumbers([[2, "known"]], 10);

    expect([numbers.add("new"), numbers.find("known")]).toEqual([10, 2]);
    numbers.remove(2);
    expect(numbers.add("other")).toBe(11);
  });

  test("there is no number above the last one", () => {
    const numbers = new RuleNumbers([], MOST_RULE_NUMBERS);

    expect([numbers.add("last"), numbers.add("more")]).toEqual([MOST_RULE_NUMBERS, undefined]);
  });

  test("is free after two whole looks, the first begun when the rule was known to be gone", () => {
    const numbers = new RuleNumbers([[1, "a"]]);

    expect(numbers.releaseUnused(NONE, { since: 50, numbers: [] }, 100)).toEqual([]);
    expect(numbers.releaseUnused(NONE, { since: 100, numbers: [] }, 150)).toEqual([]);
    expect(numbers.releaseUnused(NONE, { since: 101, numbers: [] }, 200)).toEqual([]);
    expect(numbers.releaseUnused(NONE, { since: 201, numbers: [] }, 250)).toEqual([1]);
    expect([numbers.all, numbers.add("b")]).toEqual([[], 1]);
  });

  test("is not free if only one of two looks missed it, or the same look is told twice", () => {
    const numbers = new RuleNumbers([[1, "a"]]);
    numbers.releaseUnused(NONE, { since: 50, numbers: [] }, 100);

    const looks = [
      { look: { since: 110, numbers: [] }, told: 120 },
      { look: { since: 110, numbers: [] }, told: 130 },
      { look: { since: 210, numbers: [1] }, told: 220 },
      { look: { since: 310, numbers: [] }, told: 320 },
      { look: { since: 410, numbers: [1] }, told: 420 },
      { look: { since: 510, numbers: [] }, told: 520 },
    ];
    expect(looks.map(({ look, told }) => numbers.releaseUnused(NONE, look, told))).toEqual(looks.map(() => []));
    expect(numbers.releaseUnused(NONE, { since: 610, numbers: [] }, 620)).toEqual([1]);
  });

  test("is not free if the rule came back meanwhile", () => {
    const numbers = new RuleNumbers([[1, "a"]]);
    numbers.releaseUnused(NONE, { since: 50, numbers: [] }, 100);
    expect(numbers.find("a")).toBe(1);

    expect(numbers.releaseUnused(NONE, { since: 150, numbers: [] }, 200)).toEqual([]);
    expect(numbers.releaseUnused(new Set(["a"]), { since: 250, numbers: [] }, 300)).toEqual([]);
    expect(numbers.releaseUnused(NONE, { since: 350, numbers: [] }, 400)).toEqual([]);
    expect(numbers.releaseUnused(NONE, { since: 450, numbers: [] }, 500)).toEqual([]);
    expect(numbers.releaseUnused(NONE, { since: 550, numbers: [] }, 600)).toEqual([1]);
  });

  test("no label of a connection ever stands for another rule than that which wrote it", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.constantFrom(...EVENTS), fc.nat(5)), { maxLength: 60 }), (events) => {
        const numbers = new RuleNumbers([]);
        const table = new Set<string>();
        const labels = new Map<number, string>();
        const connections: number[] = [];
        let looks: { readonly since: number; readonly numbers: number[] } | undefined;
        let hasMissed = false;
        for (const [now, [event, which]] of events.entries()) {
          const comment = `rule ${which}`;
          if (event === "add") {
            const number = numbers.find(comment) ?? numbers.add(comment) ?? 0;
            table.add(comment);
            // No connection has a number of another rule.
            if (connections.includes(number)) expect(labels.get(number)).toBe(comment);
            labels.set(number, comment);
          }
          if (event === "remove") table.delete(comment);
          if (event === "connect" && table.has(comment)) connections.push(numbers.find(comment) ?? 0);
          if (event === "end") connections.shift();
          // What is found at the beginning of a look stays in it; what begins during it may be missing.
          if (event === "look") [looks, hasMissed] = [{ since: now, numbers: [...connections] }, false];
          // One look misses some entries, the next one does not.
          if (event === "look that misses some" && !hasMissed)
            [looks, hasMissed] = [{ since: now, numbers: connections.slice(which) }, true];
          if (event === "tell" && looks !== undefined) numbers.releaseUnused(table, looks, now);
        }
      }),
      { numRuns: proofSize({ everyDay: 500, soak: 50_000 }) },
    );
  });
});

const EVENTS = ["add", "remove", "connect", "end", "look", "look that misses some", "tell"] as const;
