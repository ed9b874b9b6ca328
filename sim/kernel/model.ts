/**
 * What the kernel of a simulated host knows about one network namespace, as plain values. The kernel model changes them;
 * everybody else reads.
 */
import type { Address, Family } from "../../src/ip/address.ts";
import type { Prefix } from "../../src/ip/prefix.ts";
import type { NetfilterState } from "./nftables/state.ts";

export interface ModelLink {
  readonly index: number;
  readonly name: string;
  mac: Uint8Array;
  mtu: number;
  isUp: boolean;
  alias?: string;
  /** Absent for the loopback interface and for hardware. */
  readonly kind?: LinkKind;
  group: number;
  transmitQueueLength: number;
  readonly transmitQueues: number;
  readonly receiveQueues: number;
  /** The other end of a veth. */
  peer?: { readonly namespace: ModelNamespace; readonly index: number };
  vxlan?: ModelVxlan;
  /** A veth has a carrier if both ends are up; every other link has one. */
  hasCarrier: boolean;
  operState: "unknown" | "down" | "lower layer down" | "up";
  /** The kernel notices a change of the carrier a little later. */
  isCarrierChangePending: boolean;
  /** Packets can be sent: it was up with a carrier at some moment. */
  isActive: boolean;
  /** IPv6 has seen it up with a carrier. */
  isIpv6Ready: boolean;
}

export type LinkKind = "veth" | "vxlan" | "ipip" | "dummy" | "ifb" | "bridge";

export interface ModelVxlan {
  readonly id: number;
  readonly family: Family;
  local?: Address;
  underlyingIndex?: number;
  readonly port: number;
  readonly learns: boolean;
}

export interface ModelAddress {
  readonly linkIndex: number;
  readonly address: Address;
  readonly length: number;
  readonly scope: number;
  /** As in linux/if_addr.h. */
  flags: number;
}

export interface ModelRoute {
  readonly destination: Prefix;
  readonly table: number;
  readonly priority: number;
  readonly kind: RouteKind;
  readonly protocol: number;
  /** As in linux/rtnetlink.h; always 0 in IPv6. */
  readonly scope: number;
  readonly linkIndex?: number;
  readonly gateway?: Address;
  readonly isOnLink: boolean;
  preferredSource?: Address;
  readonly mtu?: number;
  readonly advertisedSegment?: number;
}

export type RouteKind =
  | "unicast"
  | "local"
  | "broadcast"
  | "anycast"
  | "multicast"
  | "blackhole"
  | "unreachable"
  | "prohibit"
  | "throw";

/** Rules with lower numbers are tried first. */
export interface ModelRule {
  readonly family: Family;
  readonly priority: number;
  readonly source?: Prefix;
  readonly table: number;
}

export interface ModelNeighbour {
  readonly linkIndex: number;
  readonly address: Address;
  mac: Uint8Array;
  state: number;
}

export interface ModelForwardingEntry {
  readonly linkIndex: number;
  readonly mac: Uint8Array;
  remote: Address;
  state: number;
}

/** One network namespace of a simulated host. */
export interface NetworkNamespace {
  readonly links: ReadonlyMap<number, Readonly<ModelLink>>;
  readonly addresses: readonly Readonly<ModelAddress>[];
  readonly routes: readonly Readonly<ModelRoute>[];
  readonly rules: readonly ModelRule[];
  /** Somebody has added a rule of IPv4 at some time. */
  readonly hasOwnIpv4Rules?: boolean;
  readonly hasLocalIpv4Table?: boolean;
  readonly neighbours: readonly Readonly<ModelNeighbour>[];
  readonly forwarding: readonly Readonly<ModelForwardingEntry>[];
  readonly sysctls: ReadonlyMap<string, string>;
  readonly nftables: NetfilterState;
  /** How many accepted messages changed something; those of netfilter are counted by `nftables`. */
  readonly changes: number;
}

/** What one namespace needs to know of another one that has the other end of a veth. */
export interface ModelNamespace extends NetworkNamespace {
  /** Unique on its host. */
  readonly id: number;
}
