/**
 * How packets get from the planned node to a destination on another node. Pure.
 *
 *   mode of the pool        other node in the same subnet      in another subnet
 *   vxlan, ipip             tunnel                             tunnel
 *   … only across subnets   its address                        tunnel
 *   unencapsulated, BGP     nothing: BIRD learns the route     nothing: BIRD learns the route
 *   … not exported          unreachable: nobody announces it   unreachable
 *   unencapsulated          its address                        unreachable
 */
import { type Family, isSameAddress } from "../ip/address.ts";
import { type InterfaceAddress, prefixAround, prefixContains } from "../ip/prefix.ts";
import type { RoutedNode, RoutedPool } from "./facts.ts";
import type { NextHop, PlannedTunnel, TunnelName } from "./plan.ts";

export type Unreachable =
  | "unknown node"
  | "without address"
  | "address of this node"
  | "without VXLAN address"
  | "without IPIP address"
  | "other subnet without BGP"
  | "not exported";

export type HopChoice =
  | { readonly kind: "route"; readonly hop: NextHop }
  /** Another program makes the route, or this node cannot reach any other (`tunnels.ts` reports that once). */
  | { readonly kind: "none" }
  | { readonly kind: "unreachable"; readonly reason: Unreachable };

/** What the choice depends on besides the other node and the pool. */
export interface Viewpoint {
  readonly own: RoutedNode | undefined;
  readonly tunnels: ReadonlyMap<TunnelName, PlannedTunnel>;
  readonly isBgpEnabled: boolean;
}

const NONE: HopChoice = { kind: "none" };

export function chooseHop(
  { own, tunnels, isBgpEnabled }: Viewpoint,
  remote: RoutedNode | undefined,
  { family, mode, isExported }: { readonly family: Family } & Pick<RoutedPool, "mode" | "isExported">,
): HopChoice {
  const from = own?.addresses[family];
  if (from === undefined) return NONE;
  if (mode.kind === "unencapsulated" && isBgpEnabled) return isExported ? NONE : unreachable("not exported");
  if (remote === undefined) return unreachable("unknown node");
  const to = remote.addresses[family];
  if (to === undefined) return unreachable("without address");
  if (isSameAddress(from.address, to.address)) return unreachable("address of this node");
  const direct: HopChoice = { kind: "route", hop: { kind: "gateway", gateway: to.address } };
  const isDirect = mode.kind === "unencapsulated" || mode.onlyAcrossSubnets;
  if (isDirect && isSameSubnet(from, to)) return direct;
  if (mode.kind === "unencapsulated") return unreachable("other subnet without BGP");

  const tunnel = tunnelName(mode.kind, family);
  if (!tunnels.has(tunnel)) return NONE;
  // Without an address the other node has no device that would receive the packets.
  if (tunnel === "ipip4" && remote.ipip === undefined) return unreachable("without IPIP address");
  const gateway = tunnel === "ipip4" ? to.address : remote.vxlan[family]?.address;
  if (gateway === undefined) return unreachable("without VXLAN address");
  return { kind: "route", hop: { kind: "tunnel", tunnel, gateway } };
}

export function tunnelName(kind: "vxlan" | "ipip", family: Family): TunnelName {
  if (kind === "ipip") return "ipip4";
  return family === 4 ? "vxlan4" : "vxlan6";
}

/**
 * Each lies in the subnet of the other: both nodes choose the same way, so that a reply returns by the interface that its
 * request came by, as strict reverse path filters demand.
 */
function isSameSubnet(left: InterfaceAddress, right: InterfaceAddress): boolean {
  return isInSubnetOf(left, right) && isInSubnetOf(right, left);
}

function isInSubnetOf({ address, length }: InterfaceAddress, other: InterfaceAddress): boolean {
  return prefixContains(prefixAround(address, length), other.address);
}

function unreachable(reason: Unreachable): HopChoice {
  return { kind: "unreachable", reason };
}
