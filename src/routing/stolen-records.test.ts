/** A thief who can write all records of one node does not get packets that are sent to others (docs/security.md). */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { address } from "../../test/support/ip.ts";
import { proofSize } from "../../test/support/proof-size.ts";
import { type RoutedCluster, routedClusters } from "../../test/support/routed-cluster.ts";
import { RoutedNetwork } from "../../test/support/routed-network.ts";
import { blockFact, type NodeText, nodeFact, planLines, poolFact, putFact } from "../../test/support/routing-facts.ts";
import { formatAddress } from "../ip/address.ts";
import { formatPrefix, prefixAround, prefixContains, prefixesOverlap } from "../ip/prefix.ts";
import type { RoutedBlock, RoutedNode } from "./facts.ts";
import { type FactChanges, RoutePlanner } from "./planner.ts";
import { vxlanMac } from "./vxlan-mac.ts";

const RUNS = { numRuns: proofSize({ everyDay: 300, soak: 5_000 }) };
const LIMIT_MILLISECONDS = proofSize({ everyDay: 60_000, soak: 1_800_000 });

/** Its name comes first: of equal claims, the first by name used to win. */
const THIEF = "a-thief";
const NODES: Readonly<Record<string, NodeText>> = {
  "node-1": { ipv4: "192.0.2.1/24", vxlan4: "10.0.0.0", mac: vxlanMac("node-1", 4), reported: ["192.0.2.1"] },
  "node-2": { ipv4: "192.0.2.2/24", vxlan4: "10.0.0.64", mac: vxlanMac("node-2", 4), reported: ["192.0.2.2"] },
};
const HONEST: NodeText = {
  ipv4: "192.0.2.9/24",
  vxlan4: "10.0.0.128",
  mac: vxlanMac(THIEF, 4),
  reported: ["192.0.2.9"],
};
const BLOCKS = [
  blockFact("10.0.0.0/26", "node-1", {}, { "10.0.0.0": "node-1" }),
  blockFact("10.0.0.64/26", "node-2", {}, { "10.0.0.64": "node-2" }),
  blockFact("10.0.0.128/26", THIEF, {}, { "10.0.0.128": THIEF }),
];

interface Written {
  readonly node?: NodeText;
  readonly blocks?: readonly RoutedBlock[];
  readonly pools?: FactChanges["pools"];
}

/** The plan of node-1 in a network of tunnels. */
function planned({ node = HONEST, blocks = [], pools = [] }: Written) {
  const planner = new RoutePlanner("node-1", { isEnabled: true, isBgpEnabled: false });
  const nodes = Object.entries({ ...NODES, [THIEF]: node });
  planner.update({
    nodes: nodes.map(([name, text]) => putFact(name, nodeFact(name, text))),
    pools: [putFact("blue", poolFact("blue", "10.0.0.0/16", "vxlan")), ...pools],
    blocks: [...BLOCKS, ...blocks].map((block) => putFact(formatPrefix(block.prefix), block)),
  });
  return planner.plan;
}

const routes = (written: Written) => planLines(planned(written)).filter((line) => /^[0-9]/.test(line));
const peers = (written: Written) => planLines(planned(written)).filter((line) => line.startsWith("peer"));
const HONEST_ROUTES = [
  "10.0.0.0/26 blackhole",
  "10.0.0.128/26 via 10.0.0.128 on vxlan4",
  "10.0.0.64/26 via 10.0.0.64 on vxlan4",
];
const PEER_OF_VICTIM = `peer vxlan4 node-2: 10.0.0.64 ${vxlanMac("node-2", 4)} at 192.0.2.2`;

describe("a thief with the token of a node", () => {
  test("changes nothing as long as its records are honest", () => {
    expect(routes({})).toEqual(HONEST_ROUTES);
    expect(planned({}).problems).toEqual([]);
  });

  test.each([
    ["inside a block of another node", "10.0.0.70/32", "overlaps block 10.0.0.64/26"],
    ["around blocks of other nodes", "10.0.0.0/20", "overlaps block"],
    ["around an address of another node", "192.0.2.2/32", "overlaps the subnet of this node"],
    ["as large as no block can be", "172.16.0.0/12", "larger than the blocks of any pool"],
  ])("attracts nothing with a block %s", (_, cidr, reason) => {
    const written = { blocks: [blockFact(cidr, THIEF)] };
    expect(routes(written)).toEqual(HONEST_ROUTES);
    const { problems } = planned(written);
    expect(problems).toEqual([expect.stringContaining(`Block ${cidr} of node "${THIEF}" does not count: `)]);
    expect(problems[0]).toContain(reason);
  });

  test("attracts nothing with a block around an address of a node in another subnet", () => {
    const far = { ...NODES, "node-2": { ...NODES["node-2"], ipv4: "198.51.100.2/24", reported: ["198.51.100.2"] } };
    const planner = new RoutePlanner("node-1", { isEnabled: true, isBgpEnabled: false });
    const nodes = Object.entries({ ...far, [THIEF]: HONEST });
    planner.update({
      nodes: nodes.map(([name, text]) => putFact(name, nodeFact(name, text))),
      blocks: [putFact("x", blockFact("198.51.100.0/26", THIEF))],
    });
    expect(planner.plan.routes.size).toBe(0);
    expect(planner.plan.problems).toEqual([expect.stringContaining('contains an address of node "node-2"')]);
  });

  test("attracts nothing with a block inside the pod CIDR of another node", () => {
    const planner = new RoutePlanner("node-1", { isEnabled: true, isBgpEnabled: false });
    const nodes = Object.entries({
      ...NODES,
      "node-2": { ...NODES["node-2"], podCidrs: ["10.244.2.0/24"] },
      [THIEF]: HONEST,
    });
    planner.update({ blocks: [putFact("x", blockFact("10.244.2.7/32", THIEF))] });
    planner.update({ nodes: nodes.map(([name, text]) => putFact(name, nodeFact(name, text))) });
    expect(planLines(planner.plan).filter((line) => line.startsWith("10."))).toEqual(["10.244.2.0/24 via 192.0.2.2"]);
  });

  test("cannot be told from an upgrade: blocks that outlive their pool, or its block size, count as they did", () => {
    const facts = (pools: FactChanges["pools"]) => {
      const planner = new RoutePlanner("node-1", { isEnabled: true, isBgpEnabled: false });
      planner.update({
        nodes: Object.entries(NODES).map(([name, text]) => putFact(name, nodeFact(name, text))),
        blocks: BLOCKS.map((block) => putFact(formatPrefix(block.prefix), block)),
        pools: pools ?? [],
      });
      return [...planner.plan.routes.keys()].filter((key) => key.endsWith("/26"));
    };
    const both = ["10.0.0.0/26", "10.0.0.64/26"];
    expect(facts([])).toEqual(both);
    expect(facts([putFact("blue", poolFact("blue", "10.0.0.0/16", "vxlan", true, 28))])).toEqual(both);
    expect(facts([putFact("part", poolFact("part", "10.0.0.0/25", "vxlan", true, 29))])).toEqual(both);
  });

  test("attracts nothing with a pool of its own, whose blocks are as small as it likes", () => {
    const pools = [putFact("mine", poolFact("mine", "10.0.0.64/28", "vxlan", true, 32))];
    expect(routes({ pools, blocks: [blockFact("10.0.0.70/32", THIEF)] })).toEqual(HONEST_ROUTES);
  });

  test("takes nothing from others with a later pool whose blocks are of another size", () => {
    const later = { ...poolFact("mine", "10.0.0.0/16", "vxlan", true, 20), createdAt: "2026-01-02T00:00:00Z" };
    const blocks = [blockFact("10.0.0.0/20", THIEF)];
    const kept = routes({ pools: [putFact("mine", later)], blocks });
    expect(kept.filter((line) => !line.startsWith("10.0.0.0/20"))).toEqual(HONEST_ROUTES);
  });

  test("takes nothing from others with a later pool around theirs, whose blocks are single addresses", () => {
    const later = { ...poolFact("mine", "10.0.0.0/8", "vxlan", true, 32), createdAt: "2026-01-02T00:00:00Z" };
    expect(routes({ pools: [putFact("mine", later)], blocks: [blockFact("10.0.0.70/32", THIEF)] })).toEqual(
      HONEST_ROUTES,
    );
  });

  test("decides by neither of two pools of the same time that disagree", () => {
    const pools = [putFact("same", poolFact("same", "10.0.0.0/16", "vxlan", true, 32))];
    const { problems } = planned({ pools, blocks: [blockFact("10.0.0.70/32", THIEF)] });
    expect(problems.join("\n")).toContain("Block 10.0.0.70/32");
    expect(problems.join("\n")).toContain("Block 10.0.0.64/26");
  });

  describe("if pods have host-local addresses, and a pool is around the pod CIDRs", () => {
    const CIDRS: Readonly<Record<string, string>> = { "node-1": "10.0.4.0/24", "node-2": "10.0.5.0/24" };
    const hostLocal = (written: Written, own = true) => {
      const planner = new RoutePlanner("node-1", { isEnabled: true, isBgpEnabled: false });
      const { node = HONEST, blocks = [] } = written;
      const nodes = Object.entries({ ...NODES, [THIEF]: node }).map(([name, text]) => {
        const podCidrs = [CIDRS[name] ?? []].flat().filter(() => own || name !== "node-1");
        return putFact(name, nodeFact(name, { ...text, podCidrs }));
      });
      // Blocks first, and the own pod CIDRs last: the order of changes does not matter.
      planner.update({ pools: [putFact("blue", poolFact("blue", "10.0.0.0/16", "vxlan"))] });
      planner.update({ blocks: [...BLOCKS, ...blocks].map((each) => putFact(formatPrefix(each.prefix), each)) });
      for (const each of nodes.toReversed()) planner.update({ nodes: [each] });
      return planner.plan;
    };
    const inside = (plan: ReturnType<typeof hostLocal>) => planLines(plan).filter((line) => line.startsWith("10.0.5."));
    const OF_VICTIM = "10.0.5.0/24 via 10.0.0.64 on vxlan4";

    test("attracts nothing with a block of the pool inside the pod CIDR of another node", () => {
      const plan = hostLocal({ blocks: [blockFact("10.0.5.0/26", THIEF)] });
      expect(inside(plan)).toEqual([OF_VICTIM]);
      expect(plan.problems).toEqual([
        `Block 10.0.5.0/26 of node "${THIEF}" does not count: it is inside a pod CIDR of node "node-2"`,
      ]);
    });

    test("blocks of the node of the pod CIDR count, and all blocks on a node without pod CIDRs", () => {
      expect(inside(hostLocal({ blocks: [blockFact("10.0.5.0/26", "node-2")] }))).toHaveLength(2);
      expect(inside(hostLocal({ blocks: [blockFact("10.0.5.0/26", THIEF)] }, false))).toHaveLength(2);
    });

    test("attracts nothing with a tunnel address inside the pod CIDR of another node", () => {
      const plan = hostLocal({ node: { ...HONEST, vxlan4: "10.0.5.7" } });
      expect(inside(plan)).toEqual([OF_VICTIM]);
      expect(plan.problems.join("\n")).toContain(
        `"${THIEF}" is not believed about its tunnel address 10.0.5.7: it is inside a pod CIDR of node "node-2"`,
      );
    });

    test("does not make the tunnel address of another node doubtful that is inside its pod CIDR", () => {
      const planner = new RoutePlanner("node-1", { isEnabled: true, isBgpEnabled: false });
      const end = "10.0.5.0";
      const nodes = {
        ...NODES,
        "node-2": { ...NODES["node-2"], vxlan4: end, podCidrs: ["10.0.5.0/24"] },
        [THIEF]: { ...HONEST, vxlan4: end },
      };
      planner.update({
        pools: [putFact("blue", poolFact("blue", "10.0.0.0/16", "vxlan"))],
        nodes: Object.entries(nodes).map(([name, text]) => putFact(name, nodeFact(name, text))),
      });
      expect(planLines(planner.plan)).toContain(`peer vxlan4 node-2: ${end} ${vxlanMac("node-2", 4)} at 192.0.2.2`);
      expect(planLines(planner.plan)).toContain("10.0.5.0/24 via 10.0.5.0 on vxlan4");
    });
  });

  test.each([
    ["another node's tunnel address", "10.0.0.64", "IPAM holds it for node"],
    ["an address of another node's pod", "10.0.0.70", "block 10.0.0.64/26 does not hold it for the node"],
    ["an address of any server", "203.0.113.1", "outside every pool"],
  ])("attracts nothing with %s as that of its tunnel", (_, vxlan4, reason) => {
    const written = { node: { ...HONEST, vxlan4 } };
    expect(routes(written).filter((line) => !line.startsWith("10.0.0.128/26"))).toEqual([
      "10.0.0.0/26 blackhole",
      "10.0.0.64/26 via 10.0.0.64 on vxlan4",
    ]);
    expect(peers(written).filter((line) => line.includes("10.0.0.64"))).toEqual([PEER_OF_VICTIM]);
    expect(planned(written).problems.join("\n")).toContain(reason);
  });

  test("attracts nothing with another node's MAC", () => {
    const written = { node: { ...HONEST, mac: vxlanMac("node-2", 4) } };
    expect(peers(written)).toEqual([PEER_OF_VICTIM]);
    expect(planned(written).problems.join("\n")).toContain('it is that of node "node-2"');
  });

  test("does not hide another node with its address", () => {
    const written = { node: { ...HONEST, ipv4: "192.0.2.2/24" } };
    expect(routes(written)).toContain("10.0.0.64/26 via 10.0.0.64 on vxlan4");
    expect(peers(written)).toEqual([PEER_OF_VICTIM]);
    expect(planned(written).problems.join("\n")).toContain('the kubelet of node "node-2" reports it');
  });

  test(
    "never gets a packet to anybody else, whatever it writes about its own node",
    () => {
      fc.assert(
        fc.property(routedClusters, stolenRecords, (drawn, records) => {
          const cluster = withTunnelRecords(drawn);
          const honest = withThief(cluster, {});
          const stolen = withThief(cluster, recordsOf(cluster, records));
          const end = stolen.nodes.at(-1)?.ipip;
          // Two nodes with one tunnel address that IPAM does not know: neither is believed, and packets are lost.
          const isDoubled = end !== undefined && !cluster.blocks.some(({ prefix }) => prefixContains(prefix, end));
          const [before, after] = [new RoutedNetwork(honest), new RoutedNetwork(stolen)];
          for (const { name } of cluster.nodes) {
            // What no record of IPAM names can be claimed.
            for (const target of cluster.targets.filter(({ kind }) => kind === "pod")) {
              const { end, nodes } = after.follow(name, target.address);
              const journey = {
                from: name,
                target,
                end,
                nodes,
                wroteBlocks: stolen.blocks,
                wroteNode: stolen.nodes.at(-1),
              };
              expect({ ...journey, isStolen: nodes.includes(THIEF) }).toMatchObject({ isStolen: false });
              if (isDoubled || !isProven(cluster, target.address)) continue;
              expect({ ...journey, nodes }).toMatchObject({ nodes: before.follow(name, target.address).nodes });
            }
          }
        }),
        RUNS,
      );
    },
    LIMIT_MILLISECONDS,
  );
});

const stolenRecords = fc.record({
  /** Of which block or target, and how long a prefix around it. */
  blocks: fc.array(fc.tuple(fc.nat(), fc.nat(32), fc.constantFrom("target", "node", "free")), { maxLength: 4 }),
  tunnel: fc.option(fc.tuple(fc.nat(), fc.constantFrom("target", "node", "free")), { nil: undefined }),
  mac: fc.nat(6),
  address: fc.nat(6),
});
type StolenRecords = typeof stolenRecords extends fc.Arbitrary<infer Value> ? Value : never;

interface Claimed {
  readonly node?: Partial<NodeText>;
  readonly blocks?: readonly RoutedBlock[];
}

/** The blocks say whose tunnel addresses are in them, and MACs follow from the names. */
function withTunnelRecords(cluster: RoutedCluster): RoutedCluster {
  const nodes = cluster.nodes.map((node): RoutedNode => {
    const vxlan = Object.fromEntries(
      Object.entries(node.vxlan).map(([family, end]) => [
        family,
        { ...end, mac: vxlanMac(node.name, family === "4" ? 4 : 6) },
      ]),
    );
    return { ...node, vxlan, reported: Object.values(node.addresses).map((each) => each.address) };
  });
  const ends = nodes.flatMap(({ name, vxlan, ipip }) =>
    [vxlan[4]?.address, vxlan[6]?.address, ipip].flatMap((each) => (each === undefined ? [] : [[each, name] as const])),
  );
  const blocks = cluster.blocks.map((block): RoutedBlock => {
    const inside = ends.filter(([each]) => prefixContains(block.prefix, each));
    return inside.length === 0
      ? block
      : { ...block, tunnels: new Map(inside.map(([each, name]) => [formatAddress(each), name])) };
  });
  return { ...cluster, nodes, blocks };
}

function withThief(cluster: RoutedCluster, { node, blocks = [] }: Claimed): RoutedCluster {
  const thief = nodeFact(THIEF, { ipv4: "192.0.0.99/24", vxlan4: "10.8.0.99", mac: vxlanMac(THIEF, 4), ...node });
  const known = new Set(cluster.blocks.map(({ prefix }) => formatPrefix(prefix)));
  return {
    ...cluster,
    nodes: [...cluster.nodes, { ...thief, reported: [address("192.0.0.99")] }],
    subnets: new Map([...cluster.subnets, [THIEF, 0]]),
    // A name says its CIDR: nobody writes a block of another node.
    blocks: [...cluster.blocks, ...blocks.filter(({ prefix }) => !known.has(formatPrefix(prefix)))],
  };
}

function recordsOf(cluster: RoutedCluster, { blocks, tunnel, mac, address: taken }: StolenRecords): Claimed {
  const pick = (index: number, kind: "target" | "node" | "free") => {
    const all = {
      target: cluster.targets.map((target) => address(target.address)),
      free: cluster.free.map(address),
      node: cluster.nodes.flatMap(({ addresses }) => Object.values(addresses).map((each) => each.address)),
    }[kind];
    return all[index % all.length];
  };
  const victim = cluster.nodes[mac];
  const stolenAddress = cluster.nodes[taken]?.addresses[4]?.address;
  const end = tunnel && pick(...tunnel);
  return {
    node: {
      ...(victim === undefined ? {} : { mac: vxlanMac(victim.name, 4) }),
      ...(end?.family === 4 ? { vxlan4: formatAddress(end), ipip: formatAddress(end) } : {}),
      ...(stolenAddress === undefined ? {} : { ipv4: `${formatAddress(stolenAddress)}/24` }),
    },
    blocks: blocks.flatMap(([index, shorter, kind]) => {
      const inside = pick(index, kind);
      if (inside === undefined) return [];
      const length = Math.max(0, (inside.family === 4 ? 32 : 128) - shorter);
      const prefix = prefixAround(inside, length);
      // One that IPAM could have created for this node is its own.
      const isRegular = cluster.pools.some(
        (pool) => pool.blockLength === length && prefixesOverlap(pool.prefix, prefix),
      );
      return isRegular ? [] : [blockFact(formatPrefix(prefix), THIEF)];
    }),
  };
}

/** In a block of its pool, or in a pod CIDR: what outlived its pool, and tunnel addresses in no block, can be disturbed. */
function isProven(cluster: RoutedCluster, text: string): boolean {
  const at = address(text);
  const block = cluster.blocks.find(({ prefix }) => prefixContains(prefix, at));
  return (
    cluster.nodes.some(({ podCidrs }) => podCidrs.some((cidr) => prefixContains(cidr, at))) ||
    cluster.pools.some(
      (pool) => block !== undefined && prefixContains(pool.prefix, at) && pool.blockLength === block.prefix.length,
    )
  );
}
