import { expect, test } from "bun:test";
import { poolChange, request } from "../../test/support/ipam.ts";
import { everythingComesAbout } from "./liveness.ts";
import { emptyHost, SmallWorld } from "./small-world.ts";

const check = (world: SmallWorld) => everythingComesAbout().check(world);

test("finds a pod that is not attached, or more than once, unless it is excused", async () => {
  const world = await SmallWorld.make("node-1");
  const one = await world.addPod("one", "node-1");
  expect(check(world)).toEqual([]);
  world.attach("node-1", { ...one, containerId: "second" });
  expect(check(world)).toEqual(["pod default/one on node-1 has 2 attachments"]);
  world.nodes.get("node-1")?.attachments.clear();
  const pod = world.pods.get("default/one");
  if (pod) world.pods.set("default/one", { ...pod, failure: "refused" });
  expect(check(world)).toEqual(["pod default/one on node-1 has 0 attachments: refused"]);
  if (pod) world.pods.set("default/one", { ...pod, excuse: "it asks for the impossible" });
  expect(check(world)).toEqual([]);
});

test("a pod is excused if no address is left", async () => {
  const world = await SmallWorld.make("node-1");
  await world.addPod("one", "node-1");
  world.nodes.get("node-1")?.attachments.clear();
  const disabled = poolChange("blue", "10.0.0.0/24", { blockSize: 29, disabled: true });
  world.table.commit([disabled, poolChange("green", "10.1.0.0/31", { blockSize: 31 })]);
  for (const handle of ["network.two", "network.three"]) {
    expect(check(world)).toHaveLength(1);
    await world.allocator.assign(request(handle));
  }
  expect(check(world)).toEqual([]);
});

test("finds a node without a record, an address, or a tunnel that a pool needs", async () => {
  const world = await SmallWorld.make("node-1");
  for (const name of ["node-1", "node-2"]) {
    world.nodes.set(name, { name, isRegistered: true, attachments: new Map(), host: emptyHost() });
  }
  expect(check(world)).toEqual(["the record of node node-1 has no address", "node node-2 has no record"]);
});
