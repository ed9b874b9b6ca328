import { describe, expect, test } from "bun:test";
import { BRAKE_INTERVAL_MILLISECONDS as INTERVAL, isLargeRemoval, RemovalBrake } from "./removal-brake.ts";

const names = (count: number, prefix = "r") => Array.from({ length: count }, (_, index) => `${prefix}${index}`);

describe("a removal is large", () => {
  test.each([
    [19, 19, false],
    [20, 20, true],
    [20, 100, false],
    [21, 100, true],
    [1_000, 5_000, false],
    [1_001, 5_000, true],
  ])("%d of %d: %p", (count, total, expected) => {
    expect(isLargeRemoval(count, total)).toBe(expected);
  });
});

describe("the brake", () => {
  const heldAfter = (brake: RemovalBrake, identities: readonly string[], now: number) => {
    brake.look({ identities, total: 40, now });
    return brake.count;
  };

  test("lets each pass that three looks have found, and holds what is new", () => {
    const brake = new RemovalBrake();
    const more = [...names(20), ...names(5, "late")];

    expect(heldAfter(brake, names(20), 0)).toBe(20);
    expect(heldAfter(brake, names(20), 1)).toBe(20);
    expect(heldAfter(brake, more, INTERVAL)).toBe(25);
    expect(heldAfter(brake, more, 2 * INTERVAL)).toBe(5);
    expect(brake.isHeld("r0")).toBe(false);
    expect(heldAfter(brake, names(5, "late"), 2 * INTERVAL + 1)).toBe(0);
  });

  test("holds few of them, if too much of another kind goes with them", () => {
    const brake = new RemovalBrake();
    const look = (count: number, now: number) => {
      const consequences = [
        { what: "blocks", count: 3, total: 3 },
        { what: "addresses", count, total: 24 },
      ];
      brake.look({ identities: names(3), total: 3, consequences, now });
      return brake.count;
    };
    expect([look(19, 0), look(24, 1), look(24, INTERVAL), look(24, 2 * INTERVAL)]).toEqual([0, 3, 3, 0]);
  });

  test("counts again what was not there in between, and everything after a long pause", () => {
    const brake = new RemovalBrake();
    for (const [found, now] of [
      [20, 0],
      [0, 1],
      [20, INTERVAL],
      [20, 2 * INTERVAL],
    ] as const) {
      heldAfter(brake, names(found), now);
    }
    expect(brake.count).toBe(20);
    expect(heldAfter(brake, names(20), 9 * INTERVAL)).toBe(20);
  });
});
