/** How many addresses are assigned: of each pool, and on each node. Pure. */
import { prefixCovers } from "../ip/prefix.ts";
import { attributesOf } from "../ipam/block.ts";
import { isWaitingAllocation, keptIn } from "../ipam/leaks/waiting-addresses.ts";
import type { Pool } from "../ipam/pools.ts";
import { restingOrdinals } from "../ipam/rest.ts";
import { affineNode, type IPAMBlock, NODE_ATTRIBUTE } from "../model/ipam-block.ts";

export interface IpamUsage {
  readonly pools: readonly PoolUsage[];
  readonly nodes: readonly NodeUsage[];
}

interface PoolUsage {
  readonly pool: string;
  readonly size: number;
  readonly inUse: number;
  /** Kept for a pod: in use or waiting. */
  readonly kept: number;
  readonly waiting: number;
  /** Released, and not yet for another owner; those that are reserved are among them. */
  readonly resting: number;
}

interface NodeUsage {
  readonly node: string;
  readonly inUse: number;
  /** In blocks of other nodes. */
  readonly borrowed: number;
  readonly blocks: number;
}

/** `now`: the time of the datastore. */
export function ipamUsage(pools: readonly Pool[], blocks: readonly IPAMBlock[], now: Date): IpamUsage {
  return { pools: pools.map((pool) => usageOfPool(pool, blocks, now)), nodes: usageOfNodes(blocks) };
}

function usageOfPool({ name, cidr }: Pool, blocks: readonly IPAMBlock[], now: Date): PoolUsage {
  const own = blocks.filter((block) => prefixCovers(cidr, block.cidr));
  const kept = own.flatMap(keptIn);
  return {
    pool: name,
    // Large pools of IPv6 exceed what a number can hold exactly; the ratio is still right.
    size: 2 ** ((cidr.network.family === 4 ? 32 : 128) - cidr.length),
    inUse: own.reduce((sum, block) => sum + countOf(block), 0),
    kept: kept.length,
    waiting: kept.filter(isWaitingAllocation).length,
    resting: own.reduce((sum, block) => sum + restingOrdinals(block, now).length, 0),
  };
}

export function usageOfNodes(blocks: readonly IPAMBlock[]): readonly NodeUsage[] {
  const nodes = new Map<string, { inUse: number; borrowed: number; blocks: number }>();
  const usageOf = (node: string) => {
    const usage = nodes.get(node) ?? { inUse: 0, borrowed: 0, blocks: 0 };
    nodes.set(node, usage);
    return usage;
  };
  for (const block of blocks) {
    const owner = affineNode(block);
    if (owner !== undefined) usageOf(owner).blocks += 1;
    for (const ordinal of block.allocations.keys()) {
      const node = attributesOf(block, ordinal)?.secondary[NODE_ATTRIBUTE];
      if (node === undefined) continue;
      usageOf(node).inUse += 1;
      if (node !== owner) usageOf(node).borrowed += 1;
    }
  }
  return Array.from(nodes, ([node, usage]) => ({ node, ...usage })).toSorted((a, b) => (a.node < b.node ? -1 : 1));
}

function countOf({ allocations }: IPAMBlock): number {
  return allocations.filter((index) => index !== undefined).length;
}
