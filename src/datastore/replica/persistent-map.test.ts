import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { PersistentMap } from "./persistent-map.ts";

const changes = fc.array(fc.tuple(fc.nat(200).map(String), fc.option(fc.integer(), { nil: undefined, freq: 3 })), {
  maxLength: 300,
});

function filled(count: number): PersistentMap<number> {
  return PersistentMap.empty<number>().with(Array.from({ length: count }, (_, index) => [`/key/${index}`, index]));
}

describe("PersistentMap", () => {
  test("has the same content as a Map after any changes, and leaves every earlier map unchanged", () => {
    fc.assert(
      fc.property(fc.array(changes, { maxLength: 8 }), (batches) => {
        const model = new Map<string, number>();
        let map = PersistentMap.empty<number>();
        const stages = batches.map((batch) => {
          map = map.with(batch);
          for (const [key, value] of batch) value === undefined ? model.delete(key) : model.set(key, value);
          return { map, expected: new Map(model) };
        });
        for (const { map, expected } of stages) {
          expect(new Map(map)).toEqual(expected);
          expect(map.size).toBe(expected.size);
          for (const [key, value] of expected) expect(map.get(key)).toBe(value);
          expect(map.get("absent")).toBeUndefined();
        }
      }),
    );
  });

  test("returns itself if nothing is changed", () => {
    const map = filled(3);

    expect(map.with([])).toBe(map);
  });

  test("changes one key of 20,000 without copying them", () => {
    const map = filled(20_000);
    const perChange = fastestOf(300, (round) => map.with([[`/key/${round}`, -1]]));
    const perCopy = fastestOf(3, () => new Map(map));

    expect(perChange).toBeLessThan(perCopy / 20);
  });
});

/** In milliseconds. Other load on the machine slows down some rounds, but not all. */
function fastestOf(rounds: number, work: (round: number) => unknown): number {
  const times = Array.from({ length: rounds }, (_, round) => {
    const start = performance.now();
    work(round);
    return performance.now() - start;
  });
  return Math.min(...times);
}
