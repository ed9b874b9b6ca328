import { describe, expect, test } from "bun:test";
import { findDoubles } from "../support/ipam-storm.ts";

const holding = (address: string, container: string, from: number, until: number) => ({
  address,
  container,
  from,
  until,
});

describe("findDoubles()", () => {
  test("finds an address that two hold at one moment, also when a shorter holding lies between", () => {
    const doubles = findDoubles([
      holding("10.0.0.1", "c", 6, 7),
      holding("10.0.0.1", "a", 0, 10),
      holding("10.0.0.1", "b", 2, 3),
    ]);

    expect(doubles).toEqual(["10.0.0.1: a and b", "10.0.0.1: a and c"]);
  });

  test("is content when one comes after the other, or holds another address", () => {
    const after = [holding("10.0.0.1", "a", 0, 1), holding("10.0.0.1", "b", 1, 2), holding("10.0.0.2", "c", 0, 2)];

    expect(findDoubles(after)).toEqual([]);
  });
});
