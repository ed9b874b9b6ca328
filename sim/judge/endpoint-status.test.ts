import { expect, test } from "bun:test";
import { statusOnlyAfterRules } from "./endpoint-status.ts";
import { putInterfaces } from "./hand-made-ruleset.ts";
import { emptyHost, SmallWorld } from "./small-world.ts";

const TEXT = `${JSON.stringify({ containerID: "c1", ifaceName: "vend1", ipv4Nets: [], ipv6Nets: [] })}\n`;
const FILE = "k8s default%2Fone eth0";

function worldOf() {
  const world = new SmallWorld();
  const host = { ...emptyHost(), tamperedAt: Number.NEGATIVE_INFINITY };
  world.nodes.set("node-1", { name: "node-1", isRegistered: true, attachments: new Map(), host });
  const invariant = statusOnlyAfterRules();
  return { world, host, check: () => invariant.check(world) };
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
