import { describe, expect, test } from "bun:test";
import { controllerSettings } from "../../src/controllers/settings.ts";
import { emptyBlock } from "../../src/ipam/block.ts";
import { writeBlock } from "../../src/model/ipam-block.ts";
import { blockKey, borrowedKey, handleKey } from "../../src/model/keys.ts";
import { NODE } from "../../src/model/kinds.ts";
import { node } from "../../src/model/node.ts";
import { prefix, request } from "../../test/support/ipam.ts";
import { boundOfLeaks, noLeakedRecord } from "./leaks.ts";
import { SmallWorld } from "./small-world.ts";

const leaks = (world: SmallWorld) => noLeakedRecord().check(world);

describe("noLeakedRecord()", () => {
  test("is content with what is in use", async () => {
    const world = await SmallWorld.make("node-1", "node-2");
    const one = await world.addPod("one", "node-1");
    world.putEndpoint(one, "node-1");
    await world.addPod("two", "node-2");

    expect(leaks(world)).toEqual([]);
  });

  test("finds the address, the handle and the endpoint of a container that is gone", async () => {
    const world = await SmallWorld.make("node-1");
    const one = await world.addPod("one", "node-1");
    world.putEndpoint(one, "node-1");
    world.nodes.get("node-1")?.attachments.clear();
    world.table.commit([{ kind: "put", key: handleKey("network.gone"), value: '{"block":{"10.0.0.72/29":1}}' }]);

    expect(leaks(world)).toEqual([
      'Address 10.0.0.72 is held by "network.container-of-one", and no container has it',
      'Handle "network.gone" is recorded, and has no address',
      'Endpoint default/node--1-k8s-one-eth0 is of container "container-of-one" on node "node-1", which is not attached',
    ]);
  });

  test("finds the address of a container whose pod was replaced by another of the same name", async () => {
    const world = await SmallWorld.make("node-1");
    await world.addPod("one", "node-1");
    const pod = world.pods.get("default/one");
    if (pod) world.pods.set("default/one", { ...pod, uid: "of a later pod" });

    expect(leaks(world)).toEqual(['Address 10.0.0.72 is held by "network.container-of-one", and no container has it']);
  });

  test("finds claims, borrowings and the record of a node that is gone, and surplus blocks of one that exists", async () => {
    const world = await SmallWorld.make("node-1", "node-2");
    for (const [name, on] of [
      ["one", "node-1"],
      ["two", "node-2"],
    ] as const)
      await world.addPod(name, on);
    for (const cidr of ["10.0.0.240/29", "10.0.0.248/29"].map(prefix)) {
      const value = writeBlock(emptyBlock(cidr, "host:node-1", 1n));
      world.table.commit([{ kind: "put", key: blockKey(cidr), value }]);
    }
    world.table.commit([{ kind: "put", key: borrowedKey("node-2", prefix("10.0.0.72/29")), value: "{}" }]);
    const second = world.nodes.get("node-2");
    if (second) second.isRegistered = false;
    const found = leaks(world);

    expect(
      found.filter((each) => each.startsWith('Node "node-2"')).map((each) => each.replace(/10[^,]*/, "…")),
    ).toEqual([
      'Node "node-2" claims block …, and is gone',
      'Node "node-2" has borrowed from block …, and is gone',
      'Node "node-2" is recorded, but the orchestrator has no such node',
    ]);
    expect(
      found.filter((each) => each.endsWith('of node "node-1" in pool 10.0.0.0/24 is empty, and not the only one')),
    ).toHaveLength(1);
  });

  test("finds the address of a tunnel that its node does not have", async () => {
    const world = await SmallWorld.make("node-1");
    await world.allocator.assign(
      request("vxlan-tunnel-addr-node-1", { attributes: { node: "node-1", type: "vxlanTunnelAddress" } }),
    );
    expect(leaks(world)).toEqual([
      'Address 10.0.0.72 is held by "vxlan-tunnel-addr-node-1", and no node has such a tunnel',
    ]);
    const value = NODE.codec.write(node.make({ name: "node-1" }, { ipv4VXLANTunnelAddr: "10.0.0.72" }));
    world.table.commit([{ kind: "put", key: NODE.key({ name: "node-1" }), value }]);
    expect(leaks(world)).toEqual([]);
  });
});

test("the bound follows from the settings of the controllers", () => {
  expect(boundOfLeaks(controllerSettings({}, undefined, { isEtcd: true }))).toBe(65 * 60_000);
});
