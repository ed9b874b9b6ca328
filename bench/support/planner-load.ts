/** A cluster for the benchmark of the planner: nodes in subnets of 250, blocks of a VXLAN pool, some addresses borrowed. Pure. */

import { formatAddress } from "../../src/ip/address.ts";
import { nthAddress, nthBlock } from "../../src/ip/block.ts";
import { formatPrefix, type Prefix } from "../../src/ip/prefix.ts";
import { type IPAMBlock, writeBlock } from "../../src/model/ipam-block.ts";
import type { RoutedNode } from "../../src/routing/facts.ts";
import type { FactChanges } from "../../src/routing/planner.ts";
import { address, prefix } from "../../test/support/ip.ts";
import { poolFact, putFact } from "../../test/support/routing-facts.ts";

export interface PlannerSize {
  readonly nodes: number;
  readonly blocksPerNode: number;
}

/** One of so many blocks has an address on another node. */
const BORROWED_EVERY = 10;
const POOL = prefix("10.0.0.0/8");
const BLOCK_LENGTH = 26;
const ASSIGNED = 20;

export function plannerNode(index: number, hostBits = 0): RoutedNode {
  const [subnet, host] = [Math.floor(index / 250), (index % 250) + 1 + hostBits];
  return {
    name: `node-${index}`,
    labels: {},
    addresses: { 4: { address: address(`172.16.${subnet}.${host}`), length: 24 } },
    vxlan: {
      4: { address: blockPrefix(index).network, mac: `66:00:00:00:${hex(index >> 8)}:${hex(index & 255)}` },
    },
    podCidrs: [],
  };
}

/** Nodes and the pool. */
export function plannerResources({ nodes }: PlannerSize): FactChanges {
  return {
    nodes: Array.from({ length: nodes }, (_, index) => putFact(`node ${index}`, plannerNode(index))),
    pools: [putFact("pool", poolFact("pool", formatPrefix(POOL), "vxlan-cross-subnet"))],
  };
}

/** The stored text of each block: the first `nodes` blocks are the first ones of the nodes. */
export function blockTexts({ nodes, blocksPerNode }: PlannerSize): readonly string[] {
  return Array.from({ length: nodes * blocksPerNode }, (_, index) => blockText(index, nodes));
}

/** `assigned`: more of its addresses change the record, but not where packets go. */
export function blockText(index: number, nodes: number, assigned = ASSIGNED): string {
  const owner = `node-${index % nodes}`;
  const borrower = `node-${(index + 1) % nodes}`;
  const cidr = blockPrefix(index);
  const ordinals = Array.from({ length: 64 }, (_, ordinal) => ordinal);
  const holderOf = (ordinal: number) => (ordinal === 1 && index % BORROWED_EVERY === 0 ? borrower : owner);
  const block: IPAMBlock = {
    cidr,
    affinity: `host:${owner}`,
    allocations: ordinals.map((ordinal) => (ordinal < assigned ? ordinal : undefined)),
    unallocated: ordinals.slice(assigned),
    attributes: ordinals.slice(0, assigned).map((ordinal) => ({
      handleId: `k8s-pod-network.${formatAddress(nthAddress(cidr, ordinal) ?? cidr.network)}`,
      secondary: { node: holderOf(ordinal), namespace: "shop", pod: `pod-${index}-${ordinal}` },
    })),
    sequenceNumber: 1n,
    sequenceNumberForAllocation: {},
    deleted: false,
  };
  return writeBlock(block);
}

function blockPrefix(index: number): Prefix {
  return nthBlock(POOL, BLOCK_LENGTH, BigInt(index)) ?? POOL;
}

function hex(byte: number): string {
  return byte.toString(16).padStart(2, "0");
}
