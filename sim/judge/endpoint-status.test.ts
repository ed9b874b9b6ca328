import { expect, test } from "bun:test";
import { startsWithRules, statusOnlyAfterRules } from "./endpoint-status.ts";
import { putInterfaces } from "./hand-made-ruleset.ts";
import { emptyHost, SmallWorld } from "./small-world.ts";

const TEXT = `${JSON.stringify({ containerID: "c1", ifaceName: "vend1", ipv4Nets: [], ipv6Nets: [] })}\n`;
const FILE = "k8s default%2Fone eth0";

function worldOf(invariant = statusOnlyAfterRules()) {
  const world = new SmallWorld();
  const host = { ...emptyHost(), tamperedAt: Number.NEGATIVE_INFINITY, policySetupMilliseconds: 10_000 };
  world.nodes.set("node-1", { name: "node-1", isRegistered: true, attachments: new Map(), host });
  const pod = { namespace: "default", name: "one", uid: "1" };
  const put = (state: "adding" | "attached") =>
    world.attach("node-1", { pod, containerId: "c1", state, addresses: [] });
  return { world, host, put, check: () => invariant.check(world) };
}

test("a status file may appear after the interface and its rules, and outlive them", () => {
  const { host, check } = worldOf();
  host.root.addLink({ index: 3, name: "vend1", alias: "net/c1/eth0" });
  putInterfaces(host.root.nftables, ["vend1"]);
  host.statusFiles.set(FILE, TEXT);
  expect(check()).toEqual([]);
  host.root.nftables.tables.clear();
  host.root.links.clear();
  expect(check()).toEqual([]);
});

test("a status file must not appear before the interface or its rules", () => {
  const { world, host, check } = worldOf();
  host.statusFiles.set(FILE, TEXT);
  expect(check()).toEqual([`node-1: "${FILE}" was written, but there is no interface "vend1"`]);
  expect(check()).toEqual([]);

  host.root.addLink({ index: 3, name: "vend1", alias: "net/c0/eth0" });
  host.statusFiles.set("another", TEXT);
  expect(check()).toEqual([
    'node-1: "another" was written, but the map "workloads_from" does not have "vend1"',
    'node-1: "another" was written, but the map "workloads_to" does not have "vend1"',
  ]);

  host.statusFiles.set("third", TEXT);
  host.tamperedAt = world.now;
  expect(check()).toEqual([]);
});

test("a status may appear with the link of the former container until its own has started", () => {
  const { host, put, check } = worldOf();
  host.root.addLink({ index: 3, name: "vend1", alias: "net/c0/eth0" });
  putInterfaces(host.root.nftables, ["vend1"]);
  put("adding");
  host.statusFiles.set(FILE, TEXT);
  expect(check()).toEqual([]);

  put("attached");
  host.statusFiles.set("another", TEXT);
  expect(check()).toEqual(['node-1: "another" is of container "c1", but "vend1" is of "net/c0/eth0"']);
});

test("a container whose ADD waits for its rules does not start without them", () => {
  const { world, host, put, check } = worldOf(startsWithRules());
  const begin = () => {
    put("adding");
    expect(check()).toEqual([]);
    put("attached");
  };
  begin();
  expect(check()).toEqual(["node-1: container c1 starts, but has no interface"]);

  host.root.addLink({ index: 3, name: "vend1", alias: "net/c1/eth0" });
  begin();
  expect(check()).toEqual([
    'node-1: container c1 starts, but the map "workloads_from" does not have "vend1"',
    'node-1: container c1 starts, but the map "workloads_to" does not have "vend1"',
  ]);
  expect(check()).toEqual([]);

  begin();
  world.now += host.policySetupMilliseconds;
  expect(check()).toEqual([]);

  putInterfaces(host.root.nftables, ["vend1"]);
  begin();
  expect(check()).toEqual([]);
});
