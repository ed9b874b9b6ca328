import { describe, expect, test } from "bun:test";
import { HANDLES_PREFIX, resourcesPrefix } from "../../src/model/keys.ts";
import { address } from "../../test/support/ipam.ts";
import { noAddressTwice, noAddressTwiceInKernels, noLivingAddressFreed, soundRecords } from "./addresses.ts";
import { type Invariant, violationsIn } from "./invariant.ts";
import { HandMadeNamespace } from "./packets/hand-made-network.ts";
import { emptyHost, SmallWorld } from "./small-world.ts";

const all = (): readonly Invariant[] => [soundRecords(), noAddressTwice(), noLivingAddressFreed()];

describe("the invariants of addresses", () => {
  test("are content with a world that is right, and with what changes in it", async () => {
    const world = await SmallWorld.make("node-1", "node-2");
    const invariants = all();
    for (const [name, node] of [
      ["one", "node-1"],
      ["two", "node-1"],
      ["three", "node-2"],
    ] as const) {
      await world.addPod(name, node);
      expect(violationsIn(world, invariants)).toEqual([]);
    }
  });

  test("find records that contradict each other", async () => {
    const world = await SmallWorld.make("node-1");
    const sound = soundRecords();
    await world.addPod("one", "node-1");
    const [handle] = world.records.under(HANDLES_PREFIX);
    world.table.commit([{ kind: "delete", key: handle?.key ?? "", revision: handle?.revision ?? "" }]);

    expect(sound.check(world)).toEqual([
      'Address 10.0.0.72 is held by handle "network.container-of-one", which does not know of it',
    ]);
  });

  test("find an address outside all pools, where a deleted pool cannot be used any more", async () => {
    const world = await SmallWorld.make("node-1");
    await world.addPod("one", "node-1");
    const [pool] = world.records.under(resourcesPrefix("ippools"));
    world.table.commit([{ kind: "delete", key: pool?.key ?? "", revision: pool?.revision ?? "" }]);

    expect(soundRecords().check(world)).toEqual([]);
    const atomic = { ...world, atomicity: "all changes" } as const;
    expect(soundRecords().check(atomic)).toEqual(["Address 10.0.0.72 lies in no pool"]);
  });

  test("find an address that two living containers have, on one node or two", async () => {
    const world = await SmallWorld.make("node-1", "node-2");
    const one = await world.addPod("one", "node-1");
    const two = await world.addPod("two", "node-2");
    world.attach("node-2", { ...two, addresses: one.addresses });

    expect(noAddressTwice().check(world)).toEqual([
      "pod default/one (container container-of-one on node-1) and pod default/two (container container-of-two on node-2) both have 10.0.0.72",
    ]);
  });

  test("find an address that two living containers have in their namespaces", async () => {
    const world = await SmallWorld.make();
    const invariant = noAddressTwiceInKernels();
    const containers = new Map([1, 2].map((number) => [`/netns/${number}`, new HandMadeNamespace()]));
    for (const [number, name] of ["node-1", "node-2"].entries()) {
      const host = { ...emptyHost(), namespaceAt: (path: string) => containers.get(path) };
      world.nodes.set(name, { name, isRegistered: true, attachments: new Map(), host });
      const attachment = await world.addPod(`pod-${number + 1}`, name);
      const netnsPath = `/netns/${number + 1}`;
      world.attach(name, { ...attachment, netnsPath });
      containers.get(netnsPath)?.addAddress(2, `10.0.0.${number}`);
    }
    expect(invariant.check(world)).toEqual([]);
    containers.get("/netns/2")?.addAddress(2, "10.0.0.0");
    expect(invariant.check(world)).toEqual([
      "pod default/pod-1 (container container-of-pod-1 on node-1) and pod default/pod-2 (container container-of-pod-2 on node-2) both have 10.0.0.0 in their namespaces",
    ]);
  });

  test("find an address that was freed, or given to another, while its pod lives", async () => {
    const world = await SmallWorld.make("node-1");
    const freed = noLivingAddressFreed();
    const one = await world.addPod("one", "node-1");
    await world.addPod("two", "node-1");
    expect(freed.check(world)).toEqual([]);

    await world.allocator.releaseAddresses(one.addresses.map((text) => ({ address: address(text) })));
    expect(freed.check(world)).toEqual([
      "pod default/one (container container-of-one on node-1) has 10.0.0.72, which its block calls free",
    ]);
    world.attach("node-1", { ...one, addresses: ["10.0.0.73"] });
    expect(freed.check(world)).toEqual([
      'pod default/one (container container-of-one on node-1) has 10.0.0.73, which is recorded for "network.container-of-two"',
    ]);
  });

  test("count containers that run, whatever the API says of their pods, until their DEL has begun", async () => {
    const world = await SmallWorld.make("node-1");
    const one = await world.addPod("one", "node-1");
    const pod = world.pods.get("default/one") ?? expect.unreachable();
    world.attach("node-1", { ...one, addresses: ["10.0.0.7"], state: "deleting" });
    expect(violationsIn(world, all())).toEqual([]);
    world.attach("node-1", { ...one, addresses: ["10.0.0.7"] });
    for (const known of [{ ...pod, isEnding: true }, { ...pod, uid: "of a later pod" }, undefined]) {
      if (known === undefined) world.pods.delete("default/one");
      else world.pods.set("default/one", known);
      expect(violationsIn(world, all()).map(({ invariant }) => invariant)).toEqual(["no living address freed"]);
    }
  });

  test("count containers until their node is deleted, and not those of before when it has joined again", async () => {
    const world = await SmallWorld.make("node-1");
    const one = await world.addPod("one", "node-1");
    await world.allocator.releaseAddresses(one.addresses.map((text) => ({ address: address(text) })));
    expect(violationsIn(world, all())).toHaveLength(1);
    const node = world.nodes.get("node-1") ?? expect.unreachable();
    world.nodes.set("node-1", { ...node, disowned: new Set([one.containerId]) });
    expect(violationsIn(world, all())).toEqual([]);

    world.attach("node-1", { ...one, containerId: "container-of-two" });
    expect(violationsIn(world, all()).map(({ invariant }) => invariant)).toEqual(["no living address freed"]);
  });
});
