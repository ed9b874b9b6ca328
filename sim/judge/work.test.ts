import { expect, test } from "bun:test";
import { workBetween } from "./work.ts";

const HALF_AN_HOUR = 1_800_000;

test("what is periodical may happen at rest, and nothing else", () => {
  const before = new Map([["store write node-1", 7]]);
  const after = new Map([
    ["store write node-1", 7],
    ["api write controllers-1", 900],
  ]);
  expect(workBetween(before, after, HALF_AN_HOUR)).toEqual([]);
  after.set("store write node-1", 9).set("api write controllers-1", 9_000);

  expect(workBetween(before, after, HALF_AN_HOUR)).toEqual([
    "store write node-1: 2 times in 30 minutes at rest, at most 0 are periodical",
    "api write controllers-1: 9000 times in 30 minutes at rest, at most 1801 are periodical",
  ]);
});
