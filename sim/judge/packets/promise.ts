/**
 * Whether routing promises that packets get from one node to an address on another one: the rules of docs/routing.md, for
 * one pair of nodes. Pure, and independent of the planner.
 */
import { type Address, formatAddress } from "../../../src/ip/address.ts";
import { type InterfaceAddress, prefixAround, prefixContains } from "../../../src/ip/prefix.ts";
import type { NodeAgentSettings } from "../../../src/model/node-agent-configuration.ts";
import type { RoutedNode, RoutedPool } from "../../../src/routing/facts.ts";

export interface RoutingFacts {
  readonly nodes: ReadonlyMap<string, RoutedNode>;
  readonly pools: readonly RoutedPool[];
  readonly settingsOf: (node: string) => Pick<NodeAgentSettings, "routing" | "bgp">;
}

/** `unknown`: another program decides, which is not part of a simulation. */
export type Promised = {
  readonly kind: "reachable" | "unreachable" | "unknown";
  readonly reason: string;
};

export function promiseOf(facts: RoutingFacts, from: string, to: string, address: Address): Promised {
  if (from === to) return { kind: "reachable", reason: "it is on the same node" };
  const settings = [from, to].map(facts.settingsOf);
  if (settings.some(({ routing }) => routing === "Disabled"))
    return { kind: "unknown", reason: "routing is disabled, another program sets the routes" };
  const [left, right] = [facts.nodes.get(from), facts.nodes.get(to)];
  const { family } = address;
  const [source, destination] = [left?.addresses[family], right?.addresses[family]];
  if (!left || !right || !source || !destination)
    return { kind: "unreachable", reason: `a node has no record with an address of IPv${family}` };
  const isNear = isInSubnetOf(source, destination) && isInSubnetOf(destination, source);
  const pool = facts.pools.find(({ prefix }) => prefixContains(prefix, address));
  if (pool === undefined || pool.mode.kind === "unencapsulated") {
    const title = pool === undefined ? `${formatAddress(address)} is in no pool` : `pool "${pool.name}" has no tunnel`;
    if (settings.some(({ bgp }) => bgp === "Enabled")) return { kind: "unknown", reason: `${title}, BGP is enabled` };
    return isNear
      ? { kind: "reachable", reason: `${title}, and the nodes are in one subnet` }
      : { kind: "unreachable", reason: `${title}, and the nodes are in two subnets` };
  }
  const { kind, onlyAcrossSubnets } = pool.mode;
  if (onlyAcrossSubnets && isNear)
    return { kind: "reachable", reason: `pool "${pool.name}" needs no tunnel within a subnet` };
  const without = [left, right].find((node) => !hasTunnel(node, kind, family));
  return without === undefined
    ? { kind: "reachable", reason: `pool "${pool.name}" has a ${kind} tunnel` }
    : { kind: "unreachable", reason: `node "${without.name}" has no ${kind} address` };
}

function hasTunnel({ vxlan, ipip }: RoutedNode, kind: "vxlan" | "ipip", family: 4 | 6): boolean {
  return kind === "vxlan" ? vxlan[family] !== undefined : ipip !== undefined && family === 4;
}

function isInSubnetOf({ address, length }: InterfaceAddress, other: InterfaceAddress): boolean {
  return prefixContains(prefixAround(address, length), other.address);
}
