import { expect, test } from "bun:test";
import { allInvariants } from "./all.ts";
import { violationsIn } from "./invariant.ts";
import { SmallWorld } from "./small-world.ts";

test("every invariant is content with a small world", async () => {
  const world = await SmallWorld.make("node-1");
  await world.addPod("one", "node-1");

  expect(violationsIn(world, allInvariants())).toEqual([]);
});
