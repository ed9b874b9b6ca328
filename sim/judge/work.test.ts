import { expect, test } from "bun:test";
import { workBetween } from "./work.ts";

const HALF_AN_HOUR = 1_800_000;

test("what is periodical may happen at rest, and nothing else", () => {
  const watch = "api: watch by agent at node-1 /api/v1/pods";
  const write = "store: write by agent at node-1 /a";
  const lease = "api: lease by controllers-1 at controllers-1 /leases/one";
  const before = new Map([[write, 7]]);
  const after = new Map([
    [write, 7],
    [lease, 1_800],
    [watch, 12],
  ]);
  expect(workBetween(before, after, HALF_AN_HOUR)).toEqual([]);
  after.set(write, 8).set(lease, 9_000).set(watch, 60).set("api: write by controllers-1 at controllers-1 /pods", 1);

  const rest = "in 30 minutes at rest, at most";
  expect(workBetween(before, after, HALF_AN_HOUR)).toEqual([
    `${write}: 1 times ${rest} 0 are periodical`,
    `${lease}: 9000 times ${rest} 1802 are periodical`,
    `${watch}: 60 times ${rest} 14 are periodical`,
    `api: write by controllers-1 at controllers-1 /pods: 1 times ${rest} 0 are periodical`,
  ]);
});
