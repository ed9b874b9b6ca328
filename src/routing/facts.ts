/** What routes between nodes are computed from, decoded from the records of the datastore. */
import type { Address } from "../ip/address.ts";
import type { InterfaceAddress, Prefix } from "../ip/prefix.ts";
import type { BlockOwners } from "../model/block-owners.ts";

/** A value for each family that has one. */
export interface ByFamily<Value> {
  readonly 4?: Value;
  readonly 6?: Value;
}

export interface RoutedNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Its addresses in the network between nodes, with the length of the subnet: `spec.bgp.ipv4Address`, `ipv6Address`. */
  readonly addresses: ByFamily<InterfaceAddress>;
  /** What its kubelet reports; absent if that is not known. Only the kubelet can write it. */
  readonly reported?: readonly Address[];
  readonly vxlan: ByFamily<VxlanEnd>;
  /** The address of its IPIP device. */
  readonly ipip?: Address;
  /** Of host-local pods (`spec.podCIDRs`); empty if its pods get their addresses from pools. */
  readonly podCidrs: readonly Prefix[];
  /** Recorded pod CIDRs that the orchestrator has not assigned to the node. Absent if there are none. */
  readonly refusedPodCidrs?: readonly string[];
  readonly asNumber?: number;
  readonly routeReflectorClusterId?: string;
}

export interface VxlanEnd {
  /** The address of the device. */
  readonly address: Address;
  /** As `formatMac` writes it. */
  readonly mac: string;
}

export type PoolMode =
  /** Routes are exchanged by BGP, or the network between nodes is flat. */
  { readonly kind: "unencapsulated" } | { readonly kind: "vxlan" | "ipip"; readonly onlyAcrossSubnets: boolean };

export interface RoutedPool {
  readonly name: string;
  readonly prefix: Prefix;
  readonly mode: PoolMode;
  /** The prefix length of its blocks. */
  readonly blockLength: number;
  /** When it was created; empty if unknown. */
  readonly createdAt: string;
  /** Whether BGP announces its blocks: not with `disableBGPExport`. */
  readonly isExported: boolean;
}

export interface RoutedBlock {
  readonly prefix: Prefix;
  /** The node that the block belongs to; `undefined` if it belongs to none. */
  readonly node: string | undefined;
  /** Addresses of the block that are assigned on other nodes, by their text. */
  readonly borrowed: ReadonlyMap<string, BorrowedAddress>;
  /** The nodes that have addresses of their tunnels in it, by the text of the address. Absent if there are none. */
  readonly tunnels?: ReadonlyMap<string, string>;
  /** Addresses that are assigned to nobody in particular, as the oldest releases did for tunnels. Absent if there are none. */
  readonly unnamed?: ReadonlySet<string>;
  /** The ordinals of the assigned addresses, a bit each. Absent if there are none. */
  readonly assigned?: bigint;
  /** Not needed for routes, but read with the rest: each block arrives once. */
  readonly owners?: BlockOwners;
}

export interface BorrowedAddress {
  readonly address: Address;
  readonly node: string;
}

/** Addresses of an endpoint of another node that IPAM does not know (`ipAddrsNoIpam`). */
export interface RemoteEndpoint {
  readonly node: string;
  readonly addresses: readonly Address[];
}

/** An endpoint of the node that is planned for. */
export interface AnnouncedEndpoint {
  readonly addresses: readonly Address[];
  /** The external ones. */
  readonly floating: readonly Address[];
}
