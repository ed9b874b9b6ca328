/** Everything that one node must hold so that its pods and those of the other nodes reach each other. */
import type { Address } from "../ip/address.ts";
import type { Prefix } from "../ip/prefix.ts";

export type TunnelName = "vxlan4" | "vxlan6" | "ipip4";

export type NextHop =
  /** `gateway`: the tunnel address of a VXLAN peer, or the node address of an IPIP peer; on the link of the tunnel. */
  | { readonly kind: "tunnel"; readonly tunnel: TunnelName; readonly gateway: Address }
  /** A node of the same subnet, on the link that has the address of this node. */
  | { readonly kind: "gateway"; readonly gateway: Address }
  /** A block of this node: an address that no pod has leads nowhere, not in a circle. */
  | { readonly kind: "blackhole" };

export interface PlannedRoute {
  readonly destination: Prefix;
  readonly hop: NextHop;
}

/** A device of this node. */
export interface PlannedTunnel {
  readonly name: TunnelName;
  /** The address of this node that its packets are sent from. */
  readonly local: Address;
  /** The address of the device. */
  readonly address: Address;
  /** Only of VXLAN. */
  readonly mac?: string;
  /** Only of VXLAN. */
  readonly vxlan?: VxlanNumbers;
}

/** The same on all nodes. */
export interface VxlanNumbers {
  readonly port: number;
  /** The network identifier (VNI). */
  readonly id: number;
}

/** The other end of a VXLAN tunnel: a neighbour `address -> mac`, and a forwarding entry `mac -> remote`. */
export interface PlannedPeer {
  readonly tunnel: "vxlan4" | "vxlan6";
  readonly address: Address;
  readonly mac: string;
  /** The address of the node. */
  readonly remote: Address;
}

export interface RoutePlan {
  readonly tunnels: ReadonlyMap<TunnelName, PlannedTunnel>;
  /** By tunnel and the name of the node: `vxlan4 node-2`. */
  readonly peers: ReadonlyMap<string, PlannedPeer>;
  /** By destination, as `formatPrefix` writes it. */
  readonly routes: ReadonlyMap<string, PlannedRoute>;
  /** The addresses of all nodes, by their text: from others no tunnelled packet is accepted. */
  readonly senders: ReadonlyMap<string, Address>;
  /** What this node announces by BGP, by its text. */
  readonly announced: ReadonlyMap<string, Prefix>;
  /** Blocks, single addresses and pod CIDRs of other nodes that are in no pool, by their text. */
  readonly outsidePools: ReadonlyMap<string, Prefix>;
  /** For people: which pool cannot be served, and why. */
  readonly problems: readonly string[];
  /** Whether records could not be read since the agent started: what is not planned may be needed, and must stay. */
  readonly isPartial: boolean;
}

/** The keys of what differs from the plan before. */
export interface PlanChange {
  readonly tunnels: ReadonlySet<TunnelName>;
  readonly peers: ReadonlySet<string>;
  readonly routes: ReadonlySet<string>;
  readonly senders: ReadonlySet<string>;
  readonly announced: ReadonlySet<string>;
  readonly outsidePools: ReadonlySet<string>;
}
