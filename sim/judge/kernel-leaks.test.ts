import { expect, test } from "bun:test";
import { identity } from "../../src/identity.ts";
import { addressBytes } from "../../src/ip/address.ts";
import { NODE } from "../../src/model/kinds.ts";
import { node } from "../../src/model/node.ts";
import { address } from "../../test/support/ip.ts";
import { putElements, putInterfaces } from "./hand-made-ruleset.ts";
import { noLeftoverInKernel } from "./kernel-leaks.ts";
import { emptyHost, SmallWorld } from "./small-world.ts";

const MAC = Uint8Array.of(0x66, 0, 0, 0, 0, 2);

/** One pod on node-1, and a tunnel to node-2. */
async function worldOf() {
  const world = await SmallWorld.make("node-1", "node-2");
  const host = emptyHost();
  world.nodes.set("node-1", { name: "node-1", isRegistered: true, attachments: new Map(), host });
  const { addresses, ...one } = await world.addPod("one", "node-1");
  world.putEndpoint({ ...one, addresses }, "node-1");
  const other = {
    bgp: { ipv4Address: "192.0.2.2/24" },
    ...{ ipv4VXLANTunnelAddr: "10.9.0.1", vxlanTunnelMACAddr: "66:00:00:00:00:02" },
  };
  const value = NODE.codec.write(node.make({ name: "node-2" }, other));
  world.table.commit([{ kind: "put", key: NODE.key({ name: "node-2" }), value }]);
  const { root } = host;
  root.addLink({ index: 3, name: "vend1", kind: "veth", alias: `network/${one.containerId}/eth0` });
  root.addLink({ index: 4, name: "vxlan", kind: "vxlan", vxlan: { id: 1, family: 4, port: 4789, learns: false } });
  root.addRoute(`${addresses[0]}/32`, { protocol: 86, linkIndex: 3 });
  root.addRoute("10.0.0.72/29", { protocol: 86, kind: "blackhole" });
  root.addRoute("10.9.0.1/32", { protocol: 86, linkIndex: 4 });
  root.addNeighbour(4, "10.9.0.1", MAC);
  root.forwarding.push({ linkIndex: 4, mac: MAC, remote: address("192.0.2.2"), state: 0 });
  putInterfaces(root.nftables, ["vend1"]);
  putElements(root.nftables, identity.policyTable, "s_abc_4", [addressBytes(address(addresses[0] ?? ""))]);
  putElements(root.nftables, identity.tunnelTable, "senders4", [addressBytes(address("192.0.2.2"))]);
  host.statusFiles.set("file", JSON.stringify({ containerID: one.containerId }));
  return { world, host, check: () => noLeftoverInKernel().check(world) };
}

test("what is in use is not a leftover", async () => {
  const { check } = await worldOf();
  expect(check()).toEqual([]);
});

test("finds everything that is left of a container", async () => {
  const { world, host, check } = await worldOf();
  world.nodes.get("node-1")?.attachments.clear();
  host.root.addRoute("10.0.0.100/32", { protocol: 86, linkIndex: 3 });
  putInterfaces(host.root.nftables, ["vend1", "vend2"]);
  putElements(host.root.nftables, identity.policyTable, "s_abc_4", [addressBytes(address("10.0.0.100"))]);

  expect(check()).toEqual([
    'node-1: interface "vend1" (network/container-of-one/eth0) is of no container',
    "node-1: the unicast route to 10.0.0.100/32 leads to nothing",
    'node-1: the map "workloads_from" has an interface that does not exist (vend2)',
    'node-1: the map "workloads_to" has an interface that does not exist (vend2)',
    'node-1: the set "s_abc_4" has 10.0.0.100, which no endpoint has',
    'node-1: the status file "file" is of no container',
  ]);
});

test("finds everything that is left of a node", async () => {
  const { world, check } = await worldOf();
  const key = NODE.key({ name: "node-2" });
  const [entry] = world.table.answer({ kind: "key", key });
  world.table.commit([{ kind: "delete", key, revision: entry?.revision ?? "" }]);

  expect(check()).toEqual([
    "node-1: the unicast route to 10.9.0.1/32 leads to nothing",
    "node-1: the neighbour 10.9.0.1 of a tunnel is no node",
    "node-1: the forwarding entry 66:00:00:00:00:02 to 192.0.2.2 leads to no node",
    "node-1: tunnelled packets of 192.0.2.2 are accepted, which is no node",
  ]);
});
