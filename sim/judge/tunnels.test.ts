import { expect, test } from "bun:test";
import { formatAddress } from "../../src/ip/address.ts";
import { NODE } from "../../src/model/kinds.ts";
import { request } from "../../test/support/ipam.ts";
import { SmallWorld } from "./small-world.ts";
import { noTunnelAddressFreed } from "./tunnels.ts";

test("finds the address of a tunnel that is free, or another's", async () => {
  const world = await SmallWorld.make("node-1");
  const invariant = noTunnelAddressFreed();
  const owner = { handle: "vxlan-tunnel-addr-node-1", node: "node-1" };
  const { addresses } = await world.allocator.assign(request(owner.handle, { node: owner.node }));
  const [address = ""] = addresses.map((each) => formatAddress(each.address));
  const node = NODE.codec.make({ name: "node-1" }, { ipv4VXLANTunnelAddr: address });
  world.table.commit([{ kind: "put", key: NODE.key({ name: "node-1" }), value: NODE.codec.write(node) }]);
  expect(invariant.check(world)).toEqual([]);

  await world.allocator.releaseHandle(owner);
  const named = `Node "node-1" names ${address} as the address of a tunnel`;
  expect(invariant.check(world)).toEqual([`${named}, which its block calls free`]);

  while (!(await world.addPod(`pod-${world.pods.size}`, "node-1")).addresses.includes(address));
  const other = `network.container-of-pod-${world.pods.size - 1}`;
  expect(invariant.check(world)).toEqual([`${named}, which is recorded for "${other}"`]);
});
