/** Tells people which nodes have no routes and which records do not count, and why. Pure. */
import { counted } from "../counted.ts";
import type { Family } from "../ip/address.ts";
import type { Unreachable } from "./next-hop.ts";

export interface UnreachableNode {
  /** The name of the pool; `undefined`: outside every pool. */
  readonly pool: string | undefined;
  readonly family: Family;
  readonly node: string;
  readonly reason: Unreachable;
}

/** More names would not help. */
const LISTED_NODES = 3;

const REASONS: Readonly<Record<Unreachable, (family: Family) => string>> = {
  "unknown node": () => "there is no Node of that name",
  "without address": (family) => `no IPv${family} address is recorded in the Node (spec.bgp.ipv${family}Address)`,
  "address of this node": (family) => `the recorded IPv${family} address is the one of this node`,
  "without VXLAN address": (family) =>
    `no VXLAN tunnel address is recorded in the Node (spec.ipv${family}VXLANTunnelAddr and its MAC)`,
  "without IPIP address": () => "no IPIP tunnel address is recorded in the Node (spec.bgp.ipv4IPIPTunnelAddr)",
  "other subnet without BGP": () =>
    "it is in another subnet, the pool has no encapsulation, and BGP is disabled; use vxlanMode CrossSubnet, or enable BGP",
  "not exported": () =>
    "the pool has no encapsulation, and disableBGPExport; use vxlanMode, or remove disableBGPExport",
};

/** Equal nodes of one pool have the same text. */
export function keyOfUnreachable({ pool = "", family, node, reason }: UnreachableNode): string {
  return `${reason} ${family} ${pool} ${node}`;
}

/** One sentence for each pool and reason. */
export function describeUnreachable(nodes: Iterable<UnreachableNode>): readonly string[] {
  const groups = Map.groupBy(nodes, ({ pool = "", family, reason }) => `${pool} ${family} ${reason}`);
  return Array.from(groups.values(), describeGroup).toSorted();
}

/** Whoever can write records could write any number of such. */
const LISTED_SENTENCES = 10;

export function describeRefused(sentences: Iterable<string>): readonly string[] {
  const all = [...sentences].toSorted();
  const rest = all.length - LISTED_SENTENCES;
  if (rest <= 0) return all;
  return [...all.slice(0, LISTED_SENTENCES), `${counted(rest, "more claim")} of blocks and Nodes do not count`];
}

function describeGroup(nodes: readonly UnreachableNode[]): string {
  const [first] = nodes;
  if (first === undefined) return "";
  const { pool, family, reason } = first;
  const where = pool === undefined ? `IPv${family} outside every pool` : `Pool "${pool}"`;
  const names = nodes.map(({ node }) => node).toSorted();
  const listed = names.slice(0, LISTED_NODES).map((name) => `"${name}"`);
  const rest = names.length - listed.length;
  const all = rest === 0 ? listed.join(", ") : `${listed.join(", ")} and ${counted(rest, "other node")}`;
  return `${where} has no route to ${all}: ${REASONS[reason](family)}`;
}
