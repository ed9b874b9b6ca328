import { describe, expect, test } from "bun:test";
import {
  blockFact,
  deleteFact,
  endpointFact,
  type NodeText,
  nodeFact,
  type PoolModeName,
  planLines,
  poolFact,
  putFact,
  remoteFact,
} from "../../test/support/routing-facts.ts";
import type { RoutedBlock } from "./facts.ts";
import type { PlanChange } from "./plan.ts";
import { type FactChanges, RoutePlanner } from "./planner.ts";

const NODES: Readonly<Record<string, NodeText>> = {
  "node-a": { ipv4: "192.0.2.1/24", ipv6: "2001:db8::1/64", vxlan4: "10.0.0.0", vxlan6: "fd00::", ipip: "10.0.0.1" },
  "node-b": {
    ipv4: "192.0.2.2/24",
    ipv6: "2001:db8::2/64",
    vxlan4: "10.0.0.64",
    vxlan6: "fd00::40",
    ipip: "10.0.0.65",
  },
  "node-c": {
    ipv4: "198.51.100.3/24",
    ipv6: "2001:db8:1::3/64",
    vxlan4: "10.0.0.128",
    vxlan6: "fd00::80",
    ipip: "10.0.0.129",
  },
};
const BLOCKS: readonly RoutedBlock[] = [
  blockFact("10.0.0.0/26", "node-a"),
  blockFact("10.0.0.64/26", "node-b"),
  blockFact("10.0.0.128/26", "node-c"),
  blockFact("fd00::/122", "node-a"),
  blockFact("fd00::40/122", "node-b"),
  blockFact("fd00::80/122", "node-c"),
];

const nodes = (all = NODES) => Object.entries(all).map(([name, text]) => putFact(name, nodeFact(name, text)));
const blocks = (all = BLOCKS) => all.map((block, index) => putFact(`block ${index}`, block));
const pools = (mode: PoolModeName, mode6: PoolModeName = mode) => [
  putFact("blue", poolFact("blue", "10.0.0.0/16", mode)),
  putFact("six", poolFact("six", "fd00::/64", mode6)),
];
const only = (mode: PoolModeName, isExported = true) => [
  putFact("blue", poolFact("blue", "10.0.0.0/16", mode, isExported)),
];

function planned(facts: FactChanges, { isBgpEnabled = true, node = "node-a" } = {}) {
  const planner = new RoutePlanner(node, { isEnabled: true, isBgpEnabled });
  planner.update(facts);
  return planner;
}

/** Without announcements and senders. */
const held = (planner: RoutePlanner) => planLines(planner.plan).filter((line) => !/^(announced|sender) /.test(line));
const routes = (planner: RoutePlanner) => held(planner).filter((line) => !/^(tunnel|peer) /.test(line));
const announced = (planner: RoutePlanner) => [...planner.plan.announced.keys()];
const changed = (change: PlanChange) =>
  Object.entries(change)
    .flatMap(([part, keys]) => Array.from(keys, (key) => `${part} ${key}`))
    .toSorted();

describe("RoutePlanner, modes", () => {
  test("VXLAN Always: a tunnel, a peer for each node, blocks by the tunnel, own blocks as blackholes, both families", () => {
    expect(held(planned({ nodes: nodes(), pools: pools("vxlan"), blocks: blocks() }))).toEqual([
      "10.0.0.0/26 blackhole",
      "10.0.0.128/26 via 10.0.0.128 on vxlan4",
      "10.0.0.64/26 via 10.0.0.64 on vxlan4",
      "fd00::/122 blackhole",
      "fd00::40/122 via fd00::40 on vxlan6",
      "fd00::80/122 via fd00::80 on vxlan6",
      "peer vxlan4 node-b: 10.0.0.64 66:04:00:00:00:62 at 192.0.2.2",
      "peer vxlan4 node-c: 10.0.0.128 66:04:00:00:00:63 at 198.51.100.3",
      "peer vxlan6 node-b: fd00::40 66:06:00:00:00:62 at 2001:db8::2",
      "peer vxlan6 node-c: fd00::80 66:06:00:00:00:63 at 2001:db8:1::3",
      "tunnel vxlan4 10.0.0.0 local 192.0.2.1 66:04:00:00:00:61",
      "tunnel vxlan6 fd00:: local 2001:db8::1 66:06:00:00:00:61",
    ]);
  });

  test("VXLAN CrossSubnet: nodes of the same subnet by their address", () => {
    expect(routes(planned({ nodes: nodes(), pools: pools("vxlan-cross-subnet"), blocks: blocks() }))).toEqual([
      "10.0.0.0/26 blackhole",
      "10.0.0.128/26 via 10.0.0.128 on vxlan4",
      "10.0.0.64/26 via 192.0.2.2",
      "fd00::/122 blackhole",
      "fd00::40/122 via 2001:db8::2",
      "fd00::80/122 via fd00::80 on vxlan6",
    ]);
  });

  test("IPIP: by the address of the node, on the tunnel", () => {
    const planner = planned({ nodes: nodes(), pools: pools("ipip", "none"), blocks: blocks() });
    expect(held(planner)).toEqual([
      "10.0.0.0/26 blackhole",
      "10.0.0.128/26 via 198.51.100.3 on ipip4",
      "10.0.0.64/26 via 192.0.2.2 on ipip4",
      "fd00::/122 blackhole",
      "tunnel ipip4 10.0.0.1 local 192.0.2.1",
    ]);
    planner.update({ pools: only("ipip-cross-subnet") });
    expect(routes(planner)).toContain("10.0.0.64/26 via 192.0.2.2");
    expect(routes(planner)).toContain("10.0.0.128/26 via 198.51.100.3 on ipip4");
  });

  test("BGP: only blackholes, the rest is learned by BIRD", () => {
    const planner = planned({ nodes: nodes(), pools: pools("none"), blocks: blocks() });
    expect(held(planner)).toEqual(["10.0.0.0/26 blackhole", "fd00::/122 blackhole"]);
    expect(planner.plan.problems).toEqual([]);
  });

  test("flat network without BGP: by the address of the node; a node of another subnet is a problem", () => {
    const planner = planned({ nodes: nodes(), pools: pools("none"), blocks: blocks() }, { isBgpEnabled: false });
    expect(held(planner)).toEqual([
      "10.0.0.0/26 blackhole",
      "10.0.0.64/26 via 192.0.2.2",
      "fd00::/122 blackhole",
      "fd00::40/122 via 2001:db8::2",
    ]);
    expect(announced(planner)).toEqual([]);
    expect(planner.plan.problems).toEqual([
      expect.stringContaining('Pool "blue" has no route to "node-c": it is in another subnet'),
      expect.stringContaining('Pool "six" has no route to "node-c": it is in another subnet'),
    ]);
    planner.update({ settings: { isEnabled: true, isBgpEnabled: true } });
    expect([planner.plan.problems, announced(planner)]).toEqual([[], ["10.0.0.0/26", "fd00::/122"]]);
  });

  test("nothing at all while routing is disabled, also with a record that cannot be read", () => {
    const planner = planned({ nodes: nodes(), pools: pools("vxlan"), blocks: blocks() });
    expect([planner.plan.tunnels.size, planner.plan.routes.size].includes(0)).toBe(false);
    const change = planner.update({
      settings: { isEnabled: false, isBgpEnabled: true },
      pools: [{ kind: "unreadable", key: "broken" }],
    });
    const { tunnels, peers, routes, senders, announced, problems, isPartial } = planner.plan;
    expect([tunnels, peers, routes, senders, announced].map(({ size }) => size)).toEqual([0, 0, 0, 0, 0]);
    expect([problems.filter((text) => !text.includes("broken")), isPartial]).toEqual([[], false]);
    expect([change.tunnels.size, change.routes.size].includes(0)).toBe(false);
    planner.update({ settings: { isEnabled: true, isBgpEnabled: true }, pools: [{ kind: "delete", key: "broken" }] });
    expect(planner.plan.tunnels.size).toBeGreaterThan(0);
  });

  test("two nodes are in one subnet only if both say so", () => {
    const wide = { ...NODES, "node-c": { ipv4: "192.0.3.3/16", vxlan4: "10.0.0.128" } };
    const facts = { nodes: nodes(wide), pools: only("vxlan-cross-subnet"), blocks: blocks() };
    expect(routes(planned(facts))).toContain("10.0.0.128/26 via 10.0.0.128 on vxlan4");
    expect(routes(planned(facts, { node: "node-c" }))).toContain("10.0.0.0/26 via 10.0.0.0 on vxlan4");
  });
});

describe("RoutePlanner, nodes", () => {
  test("the addresses of all nodes may send through tunnels", () => {
    expect([...planned({ nodes: nodes() }).plan.senders.keys()].toSorted()).toEqual([
      "192.0.2.1",
      "192.0.2.2",
      "198.51.100.3",
      "2001:db8:1::3",
      "2001:db8::1",
      "2001:db8::2",
    ]);
  });

  test("an own node without a record has no tunnel and no route to others, and a problem says so", () => {
    const { "node-a": _, ...others } = NODES;
    const planner = planned({ nodes: nodes(others), pools: only("vxlan"), blocks: blocks() });
    expect(held(planner)).toEqual(["10.0.0.0/26 blackhole", "fd00::/122 blackhole"]);
    expect(planner.plan.problems).toEqual([
      'Pool "blue" cannot be routed: this node has no IPv4 address (spec.bgp.ipv4Address of its Node)',
    ]);
    planner.update({ nodes: nodes() });
    expect(planLines(planner.plan)).toEqual(
      planLines(planned({ nodes: nodes(), pools: only("vxlan"), blocks: blocks() }).plan),
    );
  });

  test("an own node without a tunnel address has no tunnel", () => {
    const planner = planned({
      nodes: nodes({ ...NODES, "node-a": { ipv4: "192.0.2.1/24" } }),
      pools: only("vxlan-cross-subnet"),
      blocks: blocks(BLOCKS.slice(0, 3)),
    });
    expect(held(planner)).toEqual(["10.0.0.0/26 blackhole", "10.0.0.64/26 via 192.0.2.2"]);
    expect(planner.plan.problems).toEqual([
      expect.stringContaining('Pool "blue" has no tunnel: this node has no VXLAN'),
    ]);
  });

  test.each([
    ["without an address", {}, "no IPv4 address is recorded"],
    ["without a tunnel address", { ipv4: "192.0.2.2/24" }, "no VXLAN tunnel address is recorded"],
    ["with the address of this node", { ipv4: "192.0.2.1/24", vxlan4: "10.0.0.64" }, "is the one of this node"],
  ])("another node %s has neither routes nor peers", (_, text, reason) => {
    const planner = planned({
      nodes: nodes({ ...NODES, "node-b": text }),
      pools: only("vxlan"),
      blocks: blocks(BLOCKS.slice(0, 2)),
    });
    expect(held(planner).filter((line) => line.includes("64") || line.includes("node-b"))).toEqual([]);
    expect(planner.plan.problems).toEqual([expect.stringContaining(reason)]);
  });

  test("a deleted node has nothing left but the problem of its blocks", () => {
    const planner = planned({ nodes: nodes(), pools: only("vxlan"), blocks: blocks(BLOCKS.slice(0, 3)) });
    const change = planner.update({ nodes: [deleteFact("node-b")] });
    expect(changed(change)).toEqual([
      "peers vxlan4 node-b",
      "routes 10.0.0.64/26",
      "senders 192.0.2.2",
      "senders 2001:db8::2",
    ]);
    expect(planner.plan.problems).toEqual(['Pool "blue" has no route to "node-b": there is no Node of that name']);
    planner.update({ blocks: [deleteFact("block 1")] });
    expect(planner.plan.problems).toEqual([]);
  });

  test("a tunnel address outside the blocks of its node has its own route", () => {
    const astray = { ...NODES, "node-b": { ...NODES["node-b"], vxlan4: "10.0.9.9" } };
    expect(routes(planned({ nodes: nodes(astray), pools: only("vxlan"), blocks: blocks() }))).toContain(
      "10.0.9.9/32 via 10.0.9.9 on vxlan4",
    );
    const planner = planned({ nodes: nodes(astray), pools: only("ipip") });
    expect(routes(planner)).toContain("10.0.0.65/32 via 192.0.2.2 on ipip4");
    planner.update({ blocks: blocks() });
    expect(routes(planner)).not.toContain("10.0.0.65/32 via 192.0.2.2 on ipip4");
  });

  test("many nodes of one problem make one sentence", () => {
    const many = Object.fromEntries(Array.from("cdefg", (letter) => [`node-${letter}`, {}]));
    const planner = planned({
      nodes: nodes({ "node-a": NODES["node-a"] ?? {}, ...many }),
      pools: only("vxlan"),
      blocks: Object.keys(many).map((name, index) => putFact(name, blockFact(`10.0.${index}.0/26`, name))),
    });
    expect(planner.plan.problems).toEqual([
      expect.stringContaining('Pool "blue" has no route to "node-c", "node-d", "node-e" and 2 other nodes: '),
    ]);
  });
});

describe("RoutePlanner, blocks", () => {
  const facts = { nodes: nodes(), pools: only("vxlan") };

  test("a borrowed address has a route to its node, also from the node of the block", () => {
    const borrowing = [
      putFact("b", blockFact("10.0.0.0/26", "node-a", { "10.0.0.9": "node-b", "10.0.0.10": "node-c" })),
    ];
    expect(routes(planned({ ...facts, blocks: borrowing }))).toEqual(
      expect.arrayContaining(["10.0.0.0/26 blackhole", "10.0.0.9/32 via 10.0.0.64 on vxlan4"]),
    );
    const borrower = planned({ ...facts, blocks: borrowing }, { node: "node-b" });
    expect(routes(borrower)).toContain("10.0.0.0/26 via 10.0.0.0 on vxlan4");
    expect(routes(borrower)).toContain("10.0.0.10/32 via 10.0.0.128 on vxlan4");
    expect(routes(borrower).filter((line) => line.startsWith("10.0.0.9/"))).toEqual([]);
    expect(announced(borrower)).toEqual(["10.0.0.9/32"]);
  });

  test("of a block without a node only the addresses in use are routed", () => {
    const planner = planned({
      ...facts,
      blocks: [putFact("b", blockFact("10.0.5.0/26", undefined, { "10.0.5.1": "node-b" }))],
    });
    expect(routes(planner).filter((line) => line.startsWith("10.0.5."))).toEqual([
      "10.0.5.1/32 via 10.0.0.64 on vxlan4",
    ]);
  });

  test("a block of a single address has no blackhole: it would be in the place of the pod's route", () => {
    const single = (borrowed = {}) => [putFact("b", blockFact("10.0.5.7/32", "node-a", borrowed))];
    const planner = planned({ ...facts, blocks: single() });
    expect([planner.plan.routes.get("10.0.5.7/32"), announced(planner)]).toEqual([undefined, ["10.0.5.7/32"]]);
    planner.update({ blocks: single({ "10.0.5.7": "node-b" }) });
    expect(routes(planner)).toContain("10.0.5.7/32 via 10.0.0.64 on vxlan4");
    expect(announced(planner)).toEqual([]);
  });

  test("a block outside every pool is unencapsulated and announced", () => {
    const outside = [putFact("b", blockFact("10.7.0.0/26", "node-b"))];
    const flat = planned({ ...facts, blocks: outside }, { isBgpEnabled: false });
    expect(flat.plan.routes.get("10.7.0.0/26")?.hop.kind).toBe("gateway");
    expect(announced(planned({ ...facts, blocks: outside }, { node: "node-b" }))).toEqual(["10.7.0.0/26"]);
  });

  test("a pool that BGP alone could route, and may not, is a problem", () => {
    const facts = { nodes: nodes(), pools: only("none", false), blocks: blocks(BLOCKS.slice(0, 2)) };
    expect(planned(facts).plan.problems).toEqual([
      'Pool "blue" has no route to "node-b": the pool has no encapsulation, and disableBGPExport; use vxlanMode, or remove disableBGPExport',
    ]);
    expect(planned(facts, { isBgpEnabled: false }).plan.problems).toEqual([]);
  });

  test("of overlapping pools the longest prefix wins, whatever the order", () => {
    const overlapping = [putFact("red", poolFact("red", "10.0.0.64/26", "none")), ...only("vxlan")];
    for (const order of [overlapping, overlapping.toReversed()]) {
      expect(routes(planned({ nodes: nodes(), pools: order, blocks: blocks(BLOCKS.slice(0, 3)) }))).toEqual([
        "10.0.0.0/26 blackhole",
        "10.0.0.128/26 via 10.0.0.128 on vxlan4",
      ]);
    }
  });

  test("pod CIDRs are routed like blocks", () => {
    const hostLocal = {
      "node-a": { ipv4: "192.0.2.1/24", podCidrs: ["10.244.0.0/24"] },
      "node-b": { ipv4: "192.0.2.2/24", podCidrs: ["10.244.1.0/24"] },
    };
    const flat = planned({ nodes: nodes(hostLocal) }, { isBgpEnabled: false });
    expect(routes(flat)).toEqual(["10.244.0.0/24 blackhole", "10.244.1.0/24 via 192.0.2.2"]);
    const bgp = planned({ nodes: nodes(hostLocal) });
    expect([routes(bgp), announced(bgp)]).toEqual([["10.244.0.0/24 blackhole"], ["10.244.0.0/24"]]);
  });
});

describe("RoutePlanner, announcements", () => {
  const own = endpointFact(["10.0.0.5", "10.0.7.7", "172.16.0.1"], ["10.0.8.8", "203.0.113.1"]);

  test("own blocks of exported pools, whatever their mode", () => {
    const facts = { nodes: nodes(), blocks: blocks(BLOCKS.slice(0, 3)) };
    expect(announced(planned({ ...facts, pools: only("vxlan") }))).toEqual(["10.0.0.0/26"]);
    expect(announced(planned({ ...facts, pools: only("none", false) }))).toEqual([]);
  });

  test.each([
    ["in an exported pool without a tunnel", "none", true, ["10.0.0.0/26", "10.0.7.7/32", "10.0.8.8/32"]],
    ["not if the pool is not exported", "none", false, []],
    ["in VXLAN mode only floating ones", "vxlan", true, ["10.0.0.0/26", "10.0.8.8/32"]],
    ["in IPIP mode", "ipip", true, ["10.0.0.0/26", "10.0.7.7/32", "10.0.8.8/32"]],
    ["in IPIP mode between subnets", "ipip-cross-subnet", true, ["10.0.0.0/26", "10.0.7.7/32", "10.0.8.8/32"]],
    ["not in IPIP mode if the pool is not exported", "ipip", false, []],
  ] as const)("addresses unknown to IPAM and floating ones: %s", (_, mode, isExported, expected) => {
    const planner = planned({
      nodes: nodes(),
      pools: only(mode, isExported),
      blocks: blocks(BLOCKS.slice(0, 3)),
      endpoints: [putFact("pod", own)],
    });
    expect(announced(planner).toSorted()).toEqual([...expected]);
  });

  test("an address is announced by itself until its block is known", () => {
    const planner = planned({
      nodes: nodes(),
      pools: only("none"),
      endpoints: [putFact("pod", endpointFact(["10.0.0.5"]))],
    });
    expect(announced(planner)).toEqual(["10.0.0.5/32"]);
    expect(changed(planner.update({ blocks: blocks(BLOCKS.slice(0, 1)) }))).toEqual([
      "announced 10.0.0.0/26",
      "announced 10.0.0.5/32",
      "routes 10.0.0.0/26",
    ]);
  });

  test("an address of two endpoints is announced until both are gone", () => {
    const floating = endpointFact([], ["10.0.8.8"]);
    const planner = planned({
      nodes: nodes(),
      pools: only("none"),
      endpoints: [putFact("x", floating), putFact("y", floating)],
    });
    expect(changed(planner.update({ endpoints: [deleteFact("x")] }))).toEqual([]);
    expect(changed(planner.update({ endpoints: [deleteFact("y")] }))).toEqual(["announced 10.0.8.8/32"]);
  });
});

describe("RoutePlanner, addresses of other nodes that IPAM does not know", () => {
  const remote = [putFact("pod", remoteFact("node-b", ["10.0.0.200", "172.16.0.1"]))];
  const singles = (planner: RoutePlanner) => routes(planner).filter((line) => /^10.0.0.(200|70|130).32 /.test(line));

  test.each([
    ["ipip", true, ["10.0.0.200/32 via 192.0.2.2 on ipip4"]],
    ["ipip", false, ["10.0.0.200/32 via 192.0.2.2 on ipip4"]],
    ["ipip-cross-subnet", true, ["10.0.0.200/32 via 192.0.2.2"]],
    ["vxlan", true, []],
    ["none", true, []],
    ["none", false, []],
  ] as const)("in mode %s, with BGP: %p", (mode, isBgpEnabled, expected) => {
    const facts = { nodes: nodes(), pools: only(mode), blocks: blocks(BLOCKS.slice(0, 3)), remoteEndpoints: remote };
    expect(singles(planned(facts, { isBgpEnabled }))).toEqual([...expected]);
  });

  test("the route follows the pod, its node, and the block around the address", () => {
    const planner = planned({ nodes: nodes(), pools: only("ipip"), blocks: blocks(BLOCKS.slice(0, 3)) });
    planner.update({ remoteEndpoints: [putFact("pod", remoteFact("node-b", ["10.0.0.70"]))] });
    expect(singles(planner)).toEqual([]);
    planner.update({ blocks: [deleteFact("block 1")] });
    expect(singles(planner)).toEqual(["10.0.0.70/32 via 192.0.2.2 on ipip4"]);
    planner.update({ nodes: nodes({ ...NODES, "node-b": { ipv4: "192.0.2.9/24", ipip: "10.0.0.65" } }) });
    expect(singles(planner)).toEqual(["10.0.0.70/32 via 192.0.2.9 on ipip4"]);
    planner.update({ remoteEndpoints: [putFact("pod", remoteFact("node-c", ["10.0.0.70"]))] });
    expect(singles(planner)).toEqual(["10.0.0.70/32 via 198.51.100.3 on ipip4"]);
    planner.update({ remoteEndpoints: [deleteFact("pod")] });
    expect(singles(planner)).toEqual([]);
  });

  test("one that IPAM holds for another pod does not count, from when it is assigned until it is released", () => {
    const block = blockFact("10.0.0.128/26", "node-c");
    const owned = (ordinal: number) => ({ ...block, assigned: 1n << BigInt(ordinal) });
    const planner = planned({
      nodes: nodes(),
      pools: only("ipip"),
      blocks: [putFact("c", owned(1))],
      remoteEndpoints: remote,
    });
    planner.update({ remoteEndpoints: [putFact("pod", remoteFact("node-b", ["10.0.0.130"]))] });
    expect(singles(planner)).toEqual(["10.0.0.130/32 via 192.0.2.2 on ipip4"]);
    planner.update({ blocks: [putFact("c", owned(2))] });
    expect(singles(planner)).toEqual([]);
    expect(planner.plan.problems).toEqual([
      'Address 10.0.0.130 of a pod of node "node-b" does not count: IPAM holds it for another',
    ]);
    planner.update({ blocks: [putFact("c", owned(1))] });
    expect([singles(planner), planner.plan.problems]).toEqual([["10.0.0.130/32 via 192.0.2.2 on ipip4"], []]);
  });

  test("one of pods of two nodes is named while both have it", () => {
    const pods = [
      putFact("a", remoteFact("node-b", ["10.0.0.200"])),
      putFact("b", remoteFact("node-c", ["10.0.0.200"])),
    ];
    const planner = planned({ nodes: nodes(), pools: only("ipip"), remoteEndpoints: pods });
    expect(singles(planner)).toHaveLength(1);
    expect(planner.plan.problems).toEqual([
      'Address 10.0.0.200 is of pods of nodes "node-b" and "node-c": one of them gets its packets',
    ]);
    planner.update({ remoteEndpoints: [deleteFact("a")] });
    expect([singles(planner), planner.plan.problems]).toEqual([["10.0.0.200/32 via 198.51.100.3 on ipip4"], []]);
  });

  test("nor does one that a node has, from when the node has it, or one of the subnet of this node", () => {
    const pools = [putFact("all", poolFact("all", "192.0.0.0/16", "ipip"))];
    const pod = putFact("pod", remoteFact("node-b", ["192.0.2.254", "192.0.9.9"]));
    const planner = planned({ nodes: nodes(), pools, remoteEndpoints: [pod] });
    const taken = () => routes(planner).filter((line) => line.startsWith("192."));
    expect(taken()).toEqual(["192.0.9.9/32 via 192.0.2.2 on ipip4"]);
    planner.update({ nodes: nodes({ ...NODES, "node-z": { ipv4: "192.0.9.9/24" } }) });
    expect(taken()).toEqual([]);
    expect(planner.plan.problems).toContain(
      'Address 192.0.9.9 of a pod of node "node-b" does not count: it contains an address of node "node-z"',
    );
  });
});

describe("RoutePlanner, single addresses of own pods", () => {
  const block = blockFact("10.0.0.128/26", "node-c");
  const owned = (ordinal: number) => ({ ...block, assigned: 1n << BigInt(ordinal) });

  test.each([
    ["without IPAM", endpointFact(["10.0.0.130"])],
    ["floating", endpointFact([], ["10.0.0.130"])],
  ])("are not announced while IPAM holds them for another pod: %s", (_, endpoint) => {
    const planner = planned({
      nodes: nodes(),
      pools: only("none"),
      blocks: [putFact("c", owned(1))],
      endpoints: [putFact("pod", endpoint)],
    });
    expect(announced(planner)).toEqual(["10.0.0.130/32"]);
    planner.update({ blocks: [putFact("c", owned(2))] });
    expect([announced(planner), planner.plan.problems]).toEqual([
      [],
      ['Address 10.0.0.130 of a pod of node "node-a" does not count: IPAM holds it for another'],
    ]);
    planner.update({ blocks: [putFact("c", owned(1))] });
    expect([announced(planner), planner.plan.problems]).toEqual([["10.0.0.130/32"], []]);
  });

  test("are not announced if a node has them", () => {
    const pools = [putFact("all", poolFact("all", "192.0.0.0/16", "none"))];
    const planner = planned({
      nodes: nodes(),
      pools,
      endpoints: [putFact("pod", endpointFact(["192.0.2.2"], ["192.0.2.9"]))],
    });
    expect(announced(planner)).toEqual(["192.0.2.9/32"]);
    planner.update({ nodes: nodes({ ...NODES, "node-z": { ipv4: "192.0.2.9/24" } }) });
    expect(announced(planner)).toEqual([]);
  });
});

describe("RoutePlanner.update()", () => {
  const facts = { nodes: nodes(), pools: only("vxlan"), blocks: blocks(BLOCKS.slice(0, 3)) };

  test("returns everything at first", () => {
    const planner = new RoutePlanner("node-a", { isEnabled: true, isBgpEnabled: true });
    const { tunnels, peers, routes: routeKeys } = planner.update(facts);
    expect([[...tunnels], peers.size, routeKeys.size]).toEqual([["vxlan4"], 2, 3]);
  });

  test("facts equal to the known ones change nothing, not even the list of problems", () => {
    const planner = planned({ ...facts, nodes: nodes({ ...NODES, "node-b": {} }) });
    const { problems } = planner.plan;
    expect(changed(planner.update({ ...facts, nodes: nodes({ ...NODES, "node-b": {} }) }))).toEqual([]);
    expect(planner.plan.problems).toBe(problems);
    expect(problems).toHaveLength(1);
  });

  test("labels of a node change nothing", () => {
    const planner = planned(facts);
    const relabelled = { ...nodeFact("node-b", NODES["node-b"] ?? {}), labels: { rack: "1" } };
    expect(changed(planner.update({ nodes: [putFact("node-b", relabelled)] }))).toEqual([]);
  });

  test("a block that moves to another node changes its own route, and that of the tunnel address left behind", () => {
    const planner = planned(facts);
    const moved = blockFact("10.0.0.64/26", "node-c", { "10.0.0.64": "node-b" });
    expect(changed(planner.update({ blocks: [putFact("block 1", moved)] }))).toEqual([
      "routes 10.0.0.64/26",
      "routes 10.0.0.64/32",
    ]);
  });

  test("a new own address changes the tunnel and every way that depends on it", () => {
    const planner = planned({ ...facts, pools: only("vxlan-cross-subnet") });
    const moved = nodeFact("node-a", { ...NODES["node-a"], ipv4: "198.51.100.1/24" });
    expect(changed(planner.update({ nodes: [putFact("node-a", moved)] }))).toEqual([
      "routes 10.0.0.128/26",
      "routes 10.0.0.64/26",
      "senders 192.0.2.1",
      "senders 198.51.100.1",
      "tunnels vxlan4",
    ]);
  });

  test("an unreadable record keeps what was known of it", () => {
    const planner = planned(facts);
    const unreadable = { kind: "unreadable", key: "block 1" } as const;
    expect(changed(planner.update({ blocks: [unreadable], nodes: [{ ...unreadable, key: "node-b" }] }))).toEqual([]);
  });

  test("a record that cannot be read since the start makes the plan partial, until it is readable or gone", () => {
    const planner = new RoutePlanner("node-a", { isEnabled: true, isBgpEnabled: false });
    const unreadable = (key: string) => ({ kind: "unreadable", key }) as const;
    planner.update({ ...facts, pools: [unreadable("blue")], settingRecords: [unreadable("default")] });
    expect(planner.plan.isPartial).toBe(true);
    expect(planner.plan.problems.at(-1)).toContain(`cannot be read since the agent started: "blue", "default"`);
    // The mode of its blocks is not known.
    expect(held(planner)).toEqual(["10.0.0.0/26 blackhole"]);

    planner.update({ settingRecords: [deleteFact("default")] });
    expect(planner.plan.problems.at(-1)).toContain(`: "blue"; repair`);
    planner.update({ pools: facts.pools ?? [] });
    expect(planner.plan).toMatchObject({ isPartial: false, problems: [] });
    expect(held(planner)).toEqual(held(planned(facts)));
    // What a former agent has set follows from none of these.
    planner.update({ pools: [unreadable("blue"), unreadable("new")], nodes: [unreadable("node-b")] });
    expect(planner.plan.isPartial).toBe(false);
  });

  test("a pool that goes makes its blocks unencapsulated and removes the tunnel", () => {
    const planner = planned(facts);
    planner.update({ pools: [deleteFact("blue")] });
    expect(held(planner)).toEqual(["10.0.0.0/26 blackhole"]);
  });
});
