/**
 * Random clusters: nodes in subnets behind a router, pools of all modes, blocks, and the pods in them. What a cluster
 * consists of is drawn as small numbers; here it becomes facts, such as IPAM and the node agents would record them.
 */
import fc from "fast-check";
import { addressBits, formatAddress } from "../../src/ip/address.ts";
import { blockSize, nthAddress, nthBlock } from "../../src/ip/block.ts";
import { formatPrefix, isSamePrefix } from "../../src/ip/prefix.ts";
import type { RoutedBlock, RoutedNode, RoutedPool } from "../../src/routing/facts.ts";
import type { FactChanges } from "../../src/routing/planner.ts";
import { prefix } from "./ip.ts";
import {
  blockFact,
  endpointFact,
  nodeFact,
  type PoolModeName,
  poolFact,
  putFact,
  remoteFact,
} from "./routing-facts.ts";

/** An address that packets must get to, and what it needs. */
export interface Target {
  readonly address: string;
  readonly node: string;
  /**
   * `pod`: known to IPAM, in a block of its node, or of a pod CIDR. `without IPAM`, `floating`: of an endpoint, unknown to IPAM. `vxlan4` …: the
   * address of a tunnel, outside every block.
   */
  readonly kind: "pod" | "without IPAM" | "floating" | "vxlan4" | "vxlan6" | "ipip4";
}

export interface RoutedCluster {
  readonly isBgpEnabled: boolean;
  readonly nodes: readonly RoutedNode[];
  /** The subnet that each node is connected to, whatever the length of its address says. */
  readonly subnets: ReadonlyMap<string, number>;
  readonly pools: readonly RoutedPool[];
  readonly blocks: readonly RoutedBlock[];
  readonly targets: readonly Target[];
  /** Addresses of blocks that nobody has. Not of blocks with one address: these have no blackhole. */
  readonly free: readonly string[];
}

const MODES4 = ["none", "vxlan", "vxlan-cross-subnet", "ipip", "ipip-cross-subnet"] as const;
const MODES6 = ["none", "vxlan", "vxlan-cross-subnet"] as const;
/** The networks of pools, and the lengths of their blocks. The last one of each family is never a pool. */
const NETWORKS = [
  ["10.1.0.0/16", 26],
  ["10.2.0.0/16", 30],
  ["10.3.0.0/16", 32],
  ["10.9.0.0/16", 29],
  ["fd00:1::/64", 122],
  ["fd00:2::/64", 128],
  ["fd00:9::/64", 126],
] as const;
/** Pools with the addresses of tunnels that are in no block. */
const ASTRAY = ["10.8.0.0/16", "fd00:8::/64"];
const OUTSIDE = ["10.9.0.0/16", "fd00:9::/64"];

const anyNode = fc.record({
  subnet: fc.nat(2),
  /** Whether its address has the length of the subnet, none, or that of a larger network. */
  length: fc.oneof({ weight: 8, arbitrary: fc.constant("subnet") }, { weight: 1, arbitrary: fc.constant("single") }),
  has4: often(),
  has6: often(),
  vxlan: fc.constantFrom("in block", "in block", "astray", "none"),
  ipip: fc.constantFrom("in block", "in block", "astray", "none"),
  hasPodCidr: fc.boolean(),
});
const anyBlock = fc.record({
  network: fc.nat(NETWORKS.length - 1),
  index: fc.nat(7),
  /** A number beyond the nodes: no node. */
  owner: fc.nat(6),
  /** Which ordinals are assigned, and on which nodes; beyond the nodes: on the node of the block. */
  assigned: fc.array(fc.tuple(fc.nat(7), fc.nat(11)), { maxLength: 4 }),
});
const drawn = fc.record({
  isBgpEnabled: fc.boolean(),
  nodes: fc.array(anyNode, { minLength: 1, maxLength: 5 }),
  /** This node believes that it is in a larger subnet than it is. */
  wide: fc.nat(8),
  modes: fc.tuple(...NETWORKS.map(([cidr]) => fc.constantFrom(...(cidr.includes(":") ? MODES6 : MODES4)))),
  exported: fc.array(often(), { minLength: NETWORKS.length, maxLength: NETWORKS.length }),
  blocks: fc.uniqueArray(anyBlock, { maxLength: 12, selector: ({ network, index }) => `${network} ${index}` }),
  /** Addresses of endpoints that IPAM does not know: network, block (beyond all blocks or in one of them), ordinal, node. */
  unknown: fc.uniqueArray(fc.tuple(fc.nat(NETWORKS.length - 1), fc.nat(9), fc.nat(3), fc.nat(4)), {
    maxLength: 5,
    selector: ([network, index, ordinal]) => `${network} ${index} ${ordinal}`,
  }),
});
type Drawn = typeof drawn extends fc.Arbitrary<infer Value> ? Value : never;

export const routedClusters: fc.Arbitrary<RoutedCluster> = drawn.map(clusterOf);

/** Everything that the node is planned from. */
export function factsOf(
  { nodes, pools, blocks, targets }: Omit<RoutedCluster, "isBgpEnabled">,
  node: string,
): FactChanges {
  const [own, others] = [true, false].map((isOwn) => targets.filter((target) => (target.node === node) === isOwn));
  const [floating, withoutIpam] = (["floating", "without IPAM"] as const).map((kind) =>
    own?.filter((target) => target.kind === kind),
  );
  const remote = others?.filter(({ kind }) => kind === "without IPAM");
  return {
    nodes: nodes.map((each) => putFact(`node ${each.name}`, each)),
    pools: pools.map((pool) => putFact(`pool ${pool.name}`, pool)),
    blocks: blocks.map((block) => putFact(`block ${formatPrefix(block.prefix)}`, block)),
    endpoints: [
      ...(withoutIpam ?? []).map((each) => putFact(`endpoint ${each.address}`, endpointFact([each.address]))),
      ...(floating ?? []).map((each) => putFact(`endpoint ${each.address}`, endpointFact([], [each.address]))),
    ],
    remoteEndpoints: (remote ?? []).map((each) =>
      putFact(`endpoint ${each.address}`, remoteFact(each.node, [each.address])),
    ),
  };
}

function clusterOf(from: Drawn): RoutedCluster {
  const names = from.nodes.map((_, index) => `node-${index}`);
  const nameOf = (index: number): string => names[index % names.length] ?? "";
  const targets: Target[] = [];
  const free: string[] = [];
  const taken = new Set<string>();
  const take = (target: Target) => {
    if (taken.has(target.address)) return false;
    taken.add(target.address);
    targets.push(target);
    return true;
  };
  const drawnBlocks = from.blocks.map(({ network, index, owner, assigned }) => {
    const [cidr, length] = NETWORKS[network] ?? NETWORKS[0];
    const block = nthBlock(prefix(cidr), length, BigInt(index)) ?? prefix(cidr);
    const node = owner < names.length ? nameOf(owner) : undefined;
    const borrowed: Record<string, string> = {};
    for (const [ordinal, holder] of assigned) {
      // The first address of larger blocks is for tunnels.
      const at = nthAddress(block, blockSize(block) === 1 ? 0 : 1 + (ordinal % (blockSize(block) - 1)));
      const on = holder < names.length ? nameOf(holder) : node;
      if (at === undefined || on === undefined || !take({ address: formatAddress(at), node: on, kind: "pod" }))
        continue;
      if (on !== node) borrowed[formatAddress(at)] = on;
    }
    const last = nthAddress(block, blockSize(block) - 1);
    if (last !== undefined && blockSize(block) > 1) free.push(formatAddress(last));
    return { block, node, borrowed, mode: modeIn(from, network) };
  });

  const nodes = from.nodes.map((each, index) => {
    const name = nameOf(index);
    const end = (mode: "vxlan" | "ipip", family: 4 | 6) => {
      const where = each[mode];
      const own = drawnBlocks.find(
        ({ block, node, mode: used }) =>
          node === name && used?.startsWith(mode) && block.network.family === family && blockSize(block) > 1,
      );
      const kind = mode === "ipip" ? "ipip4" : (`vxlan${family}` as const);
      const first = own && formatAddress(own.block.network);
      // A host may have both kinds of tunnels: not with one address.
      if (where === "in block" && first !== undefined && take({ address: first, node: name, kind: "pod" }))
        return first;
      const astray = family === 4 ? `10.8.${kind === "ipip4" ? 1 : 0}.${index}` : `fd00:8::${index}`;
      if (where !== "none") take({ address: astray, node: name, kind });
      return where === "none" ? undefined : astray;
    };
    const length4 = from.wide === index ? 16 : each.length === "single" ? 32 : 24;
    const length6 = from.wide === index ? 32 : each.length === "single" ? 128 : 64;
    const podCidrs = each.hasPodCidr ? [`10.244.${index}.0/24`] : [];
    if (each.hasPodCidr) take({ address: `10.244.${index}.7`, node: name, kind: "pod" });
    const [vxlan4, vxlan6, ipip] = [end("vxlan", 4), end("vxlan", 6), end("ipip", 4)];
    return nodeFact(name, {
      ...(each.has4 ? { ipv4: `192.0.${each.subnet}.${index + 1}/${length4}` } : {}),
      ...(each.has6 ? { ipv6: `2001:db8:0:${each.subnet}::${index + 1}/${length6}` } : {}),
      ...(vxlan4 ? { vxlan4 } : {}),
      ...(vxlan6 ? { vxlan6 } : {}),
      ...(ipip ? { ipip } : {}),
      podCidrs,
    });
  });
  for (const [network, index, ordinal, node] of from.unknown) {
    const [cidr, length] = NETWORKS[network] ?? NETWORKS[0];
    const block = nthBlock(prefix(cidr), length, BigInt(index));
    if (block === undefined || length === addressBits(block.network.family)) continue;
    const at = nthAddress(block, 1 + (ordinal % (blockSize(block) - 1)));
    const isInOwnBlock = drawnBlocks.some((own) => own.node === nameOf(node) && isSamePrefix(own.block, block));
    const unknown = (index + ordinal) % 2 === 0 ? "without IPAM" : "floating";
    const kind = isInOwnBlock ? "pod" : unknown;
    if (at !== undefined) take({ address: formatAddress(at), node: nameOf(node), kind });
  }
  return {
    isBgpEnabled: from.isBgpEnabled,
    nodes,
    subnets: new Map(from.nodes.map(({ subnet }, index) => [nameOf(index), subnet])),
    pools: [
      ...NETWORKS.flatMap(([cidr, length], network) => {
        const mode = modeIn(from, network);
        return mode === undefined ? [] : [poolFact(`pool-${network}`, cidr, mode, from.exported[network], length)];
      }),
      ...ASTRAY.map((cidr) => poolFact(`astray-${cidr}`, cidr, "none")),
    ],
    blocks: drawnBlocks.map(({ block, node, borrowed }) => blockFact(formatPrefix(block), node, borrowed)),
    targets,
    free: free.filter((address) => !taken.has(address)),
  };
}

function modeIn(from: Drawn, network: number): PoolModeName | undefined {
  return OUTSIDE.includes(NETWORKS[network]?.[0] ?? "") ? undefined : from.modes[network];
}

function often(): fc.Arbitrary<boolean> {
  return fc.oneof({ weight: 9, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) });
}
