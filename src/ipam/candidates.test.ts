import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { blockCount } from "../ip/block.ts";
import { formatPrefix, type Prefix, parsePrefix, prefixAround, prefixCovers } from "../ip/prefix.ts";
import { candidateBlocks } from "./candidates.ts";

const prefix = (text: string): Prefix => parsePrefix(text) as Prefix;

describe("candidateBlocks()", () => {
  test("visits every block of the pool once, whatever the node", () => {
    const pool = prefix("10.0.0.0/20");
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), (node) => {
        const seen = [...candidateBlocks(pool, 26, { node, limit: 1000 })];

        expect(new Set(seen.map(formatPrefix)).size).toBe(Number(blockCount(pool, 26)));
        expect(seen.every((block) => prefixCovers(pool, block) && block.length === 26)).toBe(true);
      }),
      { numRuns: 20 },
    );
  });

  test("visits every block that is not reserved as a whole once, and no other", () => {
    const pool = prefix("10.0.0.0/20");
    const reservation = fc
      .record({ length: fc.integer({ min: 18, max: 30 }), at: fc.integer({ min: 0, max: 4095 }) })
      .map(({ length, at }) => prefixAround({ family: 4, value: pool.network.value + BigInt(at) }, length));
    fc.assert(
      fc.property(fc.string(), fc.array(reservation, { maxLength: 6 }), (node, without) => {
        const seen = [...candidateBlocks(pool, 26, { node, limit: 1000, without })].map(formatPrefix);
        const all = [...candidateBlocks(pool, 26, { node, limit: 1000 })];
        const open = all.filter((block) => !without.some((each) => prefixCovers(each, block))).map(formatPrefix);

        expect(seen.toSorted()).toEqual(open.toSorted());
      }),
    );
  });

  test("gives a node the same order every time", () => {
    const order = () => [...candidateBlocks(prefix("fd00::/48"), 122, { node: "n1", limit: 5 })].map(formatPrefix);

    expect(order()).toEqual(order());
    expect(order()).toHaveLength(5);
  });

  test("seldom sends two nodes to the same block first", () => {
    const firsts = Array.from({ length: 500 }, (_, index) => {
      const [first] = candidateBlocks(prefix("10.0.0.0/12"), 26, { node: `node-${index}`, limit: 1 });
      return formatPrefix(first as Prefix);
    });

    expect(new Set(firsts).size).toBeGreaterThan(480);
  });

  test("has nothing to offer in a pool smaller than a block", () => {
    expect([...candidateBlocks(prefix("10.0.0.0/28"), 26, { node: "n", limit: 5 })]).toEqual([]);
  });
});
