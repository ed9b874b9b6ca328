import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { orderRecords, type ServiceRecord } from "./discovery.ts";

const record = (name: string, priority: number, weight: number): ServiceRecord => ({ name, port: 1, priority, weight });

describe("orderRecords()", () => {
  test("puts lower priorities first, whatever the random numbers", () => {
    const records = [record("c", 20, 100), record("a", 0, 1), record("b", 10, 50)];

    fc.assert(
      fc.property(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (lot) => {
        expect(orderRecords(records, () => lot).map(({ name }) => name)).toEqual(["a", "b", "c"]);
      }),
    );
  });

  test("returns every record exactly once", () => {
    const anyRecord = fc.record({
      name: fc.string(),
      port: fc.nat(),
      priority: fc.nat({ max: 2 }),
      weight: fc.nat({ max: 3 }),
    });
    fc.assert(
      fc.property(
        fc.array(anyRecord),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (records, lot) => {
          expect(new Set(orderRecords(records, () => lot))).toEqual(new Set(records));
          expect(orderRecords(records, () => lot)).toHaveLength(records.length);
        },
      ),
    );
  });

  test("chooses among equal priorities in proportion to their weights", () => {
    const records = [record("light", 0, 1), record("heavy", 0, 3)];
    const firsts = [0, 0.2, 0.3, 0.9].map((lot) => orderRecords(records, () => lot)[0]?.name);

    expect(firsts).toEqual(["light", "light", "heavy", "heavy"]);
  });
});
