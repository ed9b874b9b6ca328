/**
 * The addresses of a node's tunnel devices: fields of its Node, and how IPAM records them. They belong to no container:
 * their handle names the node, and an attribute the kind of tunnel.
 */
import type { Family } from "../ip/address.ts";
import type { Node } from "./node.ts";

export type TunnelKind = "vxlan4" | "vxlan6" | "ipip4";

export interface TunnelAddressKind {
  readonly kind: TunnelKind;
  readonly family: Family;
  /** For people. */
  readonly title: string;
  /** The attribute of the allocation. */
  readonly type: string;
  readonly handlePrefix: string;
}

export const TUNNEL_TYPE_ATTRIBUTE = "type";

export const TUNNEL_ADDRESSES: readonly TunnelAddressKind[] = [
  {
    kind: "vxlan4",
    family: 4,
    title: "VXLAN tunnel",
    type: "vxlanTunnelAddress",
    handlePrefix: "vxlan-tunnel-addr-",
  },
  {
    kind: "vxlan6",
    family: 6,
    title: "IPv6 VXLAN tunnel",
    type: "vxlanV6TunnelAddress",
    handlePrefix: "vxlan-v6-tunnel-addr-",
  },
  { kind: "ipip4", family: 4, title: "IPIP tunnel", type: "ipipTunnelAddress", handlePrefix: "ipip-tunnel-addr-" },
];

/** "VXLAN tunnel" of an allocation with that attribute; `undefined` if it is not that of a tunnel. */
export function tunnelTitle(attributes: Readonly<Record<string, string>>): string | undefined {
  return TUNNEL_ADDRESSES.find(({ type }) => type === attributes[TUNNEL_TYPE_ATTRIBUTE])?.title;
}

/** The node that the handle of a tunnel names; `undefined` if it is another handle. */
export function nodeOfTunnelHandle(handle: string | undefined): string | undefined {
  const kind = TUNNEL_ADDRESSES.find(({ handlePrefix }) => handle?.startsWith(handlePrefix));
  return kind && handle?.slice(kind.handlePrefix.length);
}

/** As the Node records it. */
export function recordedTunnelAddress(spec: Node["spec"], kind: TunnelKind): string | undefined {
  switch (kind) {
    case "vxlan4":
      return spec.ipv4VXLANTunnelAddr;
    case "vxlan6":
      return spec.ipv6VXLANTunnelAddr;
    case "ipip4":
      return spec.bgp?.ipv4IPIPTunnelAddr;
  }
}
