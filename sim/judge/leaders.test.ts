import { expect, test } from "bun:test";
import { Cluster } from "../run/cluster.ts";
import { generateScript } from "../script/generate.ts";
import type { World } from "./invariant.ts";
import { oneLeader } from "./leaders.ts";
import { SmallWorld } from "./small-world.ts";

test("two copies of the controllers that lead at the same time are noticed", async () => {
  const small = await SmallWorld.make("node-1");
  const worldWith = (leaders: readonly string[]): World => ({ ...small, leaders });

  expect(oneLeader().check(worldWith(["controllers-1"]))).toEqual([]);
  expect(oneLeader().check(worldWith(["controllers-1", "controllers-2"]))).toEqual([
    "controllers-1 and controllers-2 lead at the same time",
  ]);
});

test("a leader that is frozen leads no longer when the other one does", async () => {
  const cluster = new Cluster({ ...generateScript(1), nodes: [], operations: [] });
  await cluster.start();
  await cluster.scheduler.runUntil(30_000);
  const [former = ""] = cluster.leaders;
  cluster.controllers.get(former)?.freeze(60_000);
  await cluster.scheduler.runUntil(80_000);

  expect(cluster.leaders).toEqual([...cluster.controllers.keys()].filter((name) => name !== former));
});
