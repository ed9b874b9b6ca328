/**
 * The addresses that no pod may send from unless they are its own, whatever its annotation says: those of pools and nodes.
 * Policies judge by them. The administrator may list exceptions (`feature_control.cluster_source_prefixes`). Pure.
 */
import { type Family, parseAddress } from "../ip/address.ts";
import { mergedRanges, rangesWithout } from "../ip/merged-ranges.ts";
import { type Prefix, parsePrefix, singlePrefix } from "../ip/prefix.ts";
import type { AddressRange } from "../ip/range.ts";
import type { Node } from "../model/node.ts";

/** In order, without overlaps. */
export type ClusterSources = Readonly<Record<Family, readonly AddressRange[]>>;

export interface ClusterAddresses {
  readonly pools: readonly Prefix[];
  readonly nodes: readonly Node["spec"][];
  readonly permitted: readonly Prefix[];
}

export function clusterSources({ pools, nodes, permitted }: ClusterAddresses): ClusterSources {
  const all = [...pools, ...nodes.flatMap(nodePrefixes)];
  const rangesOf = (family: Family) => rangesWithout(mergedRanges(all, family), mergedRanges(permitted, family));
  return { 4: rangesOf(4), 6: rangesOf(6) };
}

/** Also the ranges that pods of the node get from `host-local`. */
function nodePrefixes({ bgp = {}, wireguard = {}, addresses = [], podCIDRs = [], ...spec }: Node["spec"]): Prefix[] {
  const single = [
    ...[bgp.ipv4Address, bgp.ipv6Address, bgp.ipv4IPIPTunnelAddr],
    ...[spec.ipv4VXLANTunnelAddr, spec.ipv6VXLANTunnelAddr],
    ...[wireguard.interfaceIPv4Address, wireguard.interfaceIPv6Address],
    ...addresses.map(({ address }) => address),
  ].flatMap((text = "") => parseAddress(text.split("/", 1)[0] ?? "") ?? []);
  return [...single.map(singlePrefix), ...podCIDRs.flatMap((text) => parsePrefix(text) ?? [])];
}
