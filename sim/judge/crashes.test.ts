import { expect, test } from "bun:test";
import { parseInterfaceAddress } from "../../src/ip/prefix.ts";
import { SimulatedReplica } from "../control/simulated-replica.ts";
import { SimulatedNode } from "../node/simulated-node.ts";
import { Random } from "../schedule/random.ts";
import { Scheduler } from "../schedule/scheduler.ts";
import { nobodyCrashes } from "./crashes.ts";
import type { World } from "./invariant.ts";
import { SmallWorld } from "./small-world.ts";

const POD = { namespace: "red", name: "web", uid: "uid-1" };

/** Every connection to the datastore is a fault of code. */
function startNode(crashes: string[]) {
  const [random, own] = [new Random(1), parseInterfaceAddress("172.18.0.11/24")];
  const scheduler = new Scheduler(random);
  const fail = () => {
    throw new TypeError("undefined is not a function");
  };
  const node = new SimulatedNode({
    ...{ name: "node-1", scheduler, random, addresses: own === undefined ? [] : [own] },
    ...{ openStore: fail, openApi: fail, network: { datastore: "etcd" } },
    onCrash: (what) => crashes.push(what),
  });
  return { node, scheduler };
}

test("a part of the agent that fails for a fault of its code is a crash", async () => {
  const crashes: string[] = [];
  const { node, scheduler } = startNode(crashes);
  node.startAgent();
  await scheduler.runUntil(50);

  expect(crashes).toContainEqual(expect.stringMatching(/^agent .*the installed network: TypeError/));
});

test("an internal error of the plugin is a crash", async () => {
  const crashes: string[] = [];
  const { node, scheduler } = startNode(crashes);
  void node.runtime.add(POD, "container-1");
  await scheduler.runUntil(1_000);

  expect(crashes).toEqual([expect.stringContaining("undefined is not a function")]);
});

test("a replica that ends by itself is a crash, one that is killed or asked to end is none", async () => {
  const crashes: string[] = [];
  const random = new Random(1);
  const scheduler = new Scheduler(random);
  const ends: (() => void)[] = [];
  const replica = new SimulatedReplica(
    { name: "controllers-1", scheduler, random, onCrash: (what) => crashes.push(what) },
    () => ({
      elector: { isLeading: () => false } as never,
      run: () => new Promise<void>((resolve) => ends.push(resolve)),
    }),
  );
  const stops = [() => replica.kill(), () => replica.end(), () => {}];
  for (const [index, stop] of stops.entries()) {
    replica.start();
    stop();
    ends[index]?.();
    await scheduler.runUntil(scheduler.now + 1);
  }

  expect(crashes).toEqual(["controllers-1 has ended by itself"]);
});

test("a crash is a violation", async () => {
  const world = await SmallWorld.make("node-1");
  const crashes = ["controllers-1 has ended by itself"];

  expect(nobodyCrashes().check(world)).toEqual([]);
  expect(nobodyCrashes().check({ ...world, crashes } as World)).toEqual(crashes);
});
