/** The entries of the plan of one node that follow from one fact. Pure. */
import { type Address, addressBits, formatAddress, isSameAddress } from "../ip/address.ts";
import { formatPrefix, type Prefix, prefixContains, singlePrefix } from "../ip/prefix.ts";
import type { BlockTable } from "./block-table.ts";
import type { CountedNode } from "./counted-nodes.ts";
import type { AnnouncedEndpoint, RemoteEndpoint, RoutedBlock, RoutedNode, RoutedPool } from "./facts.ts";
import { chooseHop, type tunnelName, type Viewpoint } from "./next-hop.ts";
import type { NextHop, PlannedPeer, PlannedRoute } from "./plan.ts";
import type { PoolTable } from "./pool-table.ts";
import { keyOfUnreachable, type UnreachableNode } from "./unreachable-nodes.ts";

/** Keys and values as in the plan. */
export interface Consequences {
  readonly routes: [string, PlannedRoute][];
  readonly peers: [string, PlannedPeer][];
  readonly senders: [string, Address][];
  readonly announced: [string, Prefix][];
  readonly outsidePools: [string, Prefix][];
  readonly unreachable: [string, UnreachableNode][];
  /** What does not count, for people: each sentence is its own key. */
  readonly refused: [string, string][];
}

/** All other facts. */
export interface Surroundings extends Viewpoint {
  /** The name of the planned node. */
  readonly node: string;
  /** What counts of them. */
  readonly nodes: ReadonlyMap<string, CountedNode>;
  readonly pools: PoolTable;
  /** The mode of a block outside every known pool is not known then. */
  readonly hasUnreadPools: boolean;
  readonly blocks: BlockTable;
  /** Why nothing but a node may have addresses of this network: `contains an address of node "node-1"`. */
  readonly occupied: (prefix: Prefix) => string | undefined;
  /** Other nodes than the named one whose pods have the address without IPAM, by name. */
  readonly alsoOn: (address: Address, node: string) => readonly string[];
  /** The same, but addresses of the subnet of this node are free unless a node has them. */
  readonly occupiedByNode: (prefix: Prefix) => string | undefined;
}

/** Blocks outside every pool: their pool was deleted without its blocks. The network between nodes may know them. */
const OUTSIDE_POOLS: Pick<RoutedPool, "mode" | "isExported"> = { mode: { kind: "unencapsulated" }, isExported: true };
const FAMILIES = [4, 6] as const;

export function noConsequences(): Consequences {
  return { routes: [], peers: [], senders: [], announced: [], outsidePools: [], unreachable: [], refused: [] };
}

export function entriesOfBlock(block: RoutedBlock, around: Surroundings): Consequences {
  const made = noConsequences();
  const { prefix, node, borrowed } = block;
  const reason = around.blocks.whyIgnored(block);
  if (reason !== undefined) {
    const owner = node === undefined ? "" : ` of node "${node}"`;
    refuse(made, `Block ${formatPrefix(prefix)}${owner} does not count: ${reason}`);
    return made;
  }
  // The only address of such a block is not on the node of the block.
  const isElsewhere = isSingle(prefix) && borrowed.size > 0;
  if (node !== undefined && !isElsewhere) followNetwork(made, { prefix, node }, around);
  for (const { address, node: holder } of borrowed.values()) {
    // Single addresses of the planned node itself have the route of their pod.
    followNetwork(made, { prefix: singlePrefix(address), node: holder, block: prefix }, around);
  }
  return made;
}

export function entriesOfNode({ node, refused }: CountedNode, around: Surroundings): Consequences {
  const made = noConsequences();
  for (const claim of refused) refuse(made, `Node "${node.name}" is not believed about ${claim}`);
  for (const prefix of node.podCidrs) followNetwork(made, { prefix, node: node.name }, around);
  for (const family of FAMILIES) {
    const at = node.addresses[family]?.address;
    if (at === undefined) continue;
    made.senders.push([formatAddress(at), at]);
    const own = around.own?.addresses[family]?.address;
    if (node.name === around.node || own === undefined || isSameAddress(own, at)) continue;
    followVxlanEnd(made, { node, family, remote: at }, around);
    if (family === 4 && node.ipip !== undefined && around.tunnels.has("ipip4")) {
      followTunnelAddress(made, { node, address: node.ipip, gateway: at, tunnel: "ipip4" }, around);
    }
  }
  return made;
}

/**
 * Addresses that IPAM does not know (`ipAddrsNoIpam`) are announced if they are in a pool that is not in VXLAN mode,
 * floating ones in any pool. Those of a block, or of a pod CIDR, are announced with it. Users choose both by annotations:
 * with an address that IPAM holds for another pod, or that a node has, they would take its packets.
 */
export function entriesOfEndpoint({ addresses, floating }: AnnouncedEndpoint, around: Surroundings): Consequences {
  const made = noConsequences();
  if (!around.isBgpEnabled) return made;
  for (const address of [...addresses, ...floating]) {
    const single = singlePrefix(address);
    const pool = around.pools.around(single);
    if (pool === undefined || !pool.isExported) continue;
    if (pool.mode.kind === "vxlan" && !floating.includes(address)) continue;
    if (isAnnouncedWithOthers(address, around)) continue;
    const reason = whyRefused(address, around.occupiedByNode(single), around);
    if (reason === undefined) made.announced.push([formatPrefix(single), single]);
    else refuseAddress(made, { address, node: around.node, reason });
  }
  return made;
}

/**
 * In a pool in IPIP mode this node routes what the pods of others have without IPAM, as it routes the blocks of the pool:
 * BIRD puts nothing into the kernel there. Who may report such an address could take one from another pod or node with it.
 */
export function entriesOfRemoteEndpoint({ node, addresses }: RemoteEndpoint, around: Surroundings): Consequences {
  const made = noConsequences();
  const remote = around.nodes.get(node)?.node;
  for (const address of addresses) {
    const prefix = singlePrefix(address);
    if (around.pools.around(prefix)?.mode.kind !== "ipip" || around.blocks.hasAddress(node, address)) continue;
    if (remote?.podCidrs.some((cidr) => prefixContains(cidr, address))) continue;
    const reason = whyRefused(address, around.occupied(prefix), around);
    if (reason === undefined) followNetwork(made, { prefix, node }, around);
    const others = reason === undefined ? around.alsoOn(address, node) : [];
    if (others.length > 0) {
      const names = [node, ...others].toSorted().map((name) => `"${name}"`);
      refuse(
        made,
        `Address ${formatAddress(address)} is of pods of nodes ${names.join(" and ")}: one of them gets its packets`,
      );
    }
    if (reason !== undefined) refuseAddress(made, { address, node, reason });
  }
  return made;
}

function whyRefused(address: Address, occupied: string | undefined, { blocks }: Surroundings): string | undefined {
  return blocks.isAssigned(address) ? "IPAM holds it for another" : occupied && `it ${occupied}`;
}

interface RefusedAddress {
  readonly address: Address;
  /** Of the pod. */
  readonly node: string;
  readonly reason: string;
}

function refuseAddress(made: Consequences, { address, node, reason }: RefusedAddress): void {
  refuse(made, `Address ${formatAddress(address)} of a pod of node "${node}" does not count: ${reason}`);
}

function isAnnouncedWithOthers(address: Address, { node, own, blocks }: Surroundings): boolean {
  return blocks.hasAddress(node, address) || (own?.podCidrs.some((cidr) => prefixContains(cidr, address)) ?? false);
}

/** `block`: the block of a borrowed address, whose pool counts. */
interface NetworkOnNode {
  readonly prefix: Prefix;
  readonly node: string;
  readonly block?: Prefix;
}

function followNetwork(
  made: Consequences,
  { prefix, node, block = prefix }: NetworkOnNode,
  around: Surroundings,
): void {
  const key = formatPrefix(prefix);
  const pool = around.pools.around(block);
  if (node === around.node) {
    if (!isSingle(prefix)) made.routes.push([key, { destination: prefix, hop: { kind: "blackhole" } }]);
    if (around.isBgpEnabled && (pool === undefined || pool.isExported)) made.announced.push([key, prefix]);
    return;
  }
  if (pool === undefined) made.outsidePools.push([key, prefix]);
  if (pool === undefined && around.hasUnreadPools) return;
  const { family } = prefix.network;
  const choice = chooseHop(around, around.nodes.get(node)?.node, { family, ...(pool ?? OUTSIDE_POOLS) });
  if (choice.kind === "route") made.routes.push([key, { destination: prefix, hop: choice.hop }]);
  if (choice.kind !== "unreachable") return;
  const unreachable: UnreachableNode = { pool: pool?.name, family, node, reason: choice.reason };
  made.unreachable.push([keyOfUnreachable(unreachable), unreachable]);
}

interface VxlanPeer {
  readonly node: RoutedNode;
  readonly family: 4 | 6;
  readonly remote: Address;
}

function followVxlanEnd(made: Consequences, { node, family, remote }: VxlanPeer, around: Surroundings): void {
  const end = node.vxlan[family];
  const tunnel = family === 4 ? "vxlan4" : "vxlan6";
  if (end === undefined || !around.tunnels.has(tunnel)) return;
  made.peers.push([`${tunnel} ${node.name}`, { tunnel, address: end.address, mac: end.mac, remote }]);
  followTunnelAddress(made, { node, address: end.address, gateway: end.address, tunnel }, around);
}

interface TunnelAddress {
  readonly node: RoutedNode;
  readonly address: Address;
  readonly gateway: Address;
  readonly tunnel: ReturnType<typeof tunnelName>;
}

/**
 * Replies to the host of that node go to its tunnel address. Usually the route of its block leads there. Any other address
 * counts only where it can take nothing from others.
 */
function followTunnelAddress(made: Consequences, { node, address, ...hop }: TunnelAddress, around: Surroundings): void {
  if (around.blocks.hasAddress(node.name, address)) return;
  const destination = singlePrefix(address);
  const block = around.blocks.blockOf(address);
  const isInPool = block !== undefined || around.pools.around(destination) !== undefined;
  if (!isInPool && around.hasUnreadPools) return;
  const isOfOthers = block !== undefined && !block.unnamed?.has(formatAddress(address));
  if (isOfOthers || !isInPool) {
    const where =
      block === undefined
        ? "it is outside every pool"
        : `block ${formatPrefix(block.prefix)} does not hold it for the node`;
    refuse(made, `Node "${node.name}" is not believed about its tunnel address ${formatAddress(address)}: ${where}`);
    return;
  }
  const next: NextHop = { kind: "tunnel", ...hop };
  made.routes.push([formatPrefix(destination), { destination, hop: next }]);
}

function refuse(made: Consequences, sentence: string): void {
  made.refused.push([sentence, sentence]);
}

function isSingle({ network, length }: Prefix): boolean {
  return length === addressBits(network.family);
}
