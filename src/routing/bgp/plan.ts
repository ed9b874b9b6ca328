/**
 * What BGP does on one node: whom it speaks with, what it announces, and what it does with the routes it learns.
 *
 * Computed by `sessions.ts`; `routing/bird/` writes it as the configuration of BIRD.
 * Everything is resolved here: no names of filters, secrets or communities are left to look up. All lists are sorted, so
 * equal facts give equal plans.
 */
import type { Address } from "../../ip/address.ts";
import type { Prefix } from "../../ip/prefix.ts";
import type { ByFamily } from "../facts.ts";

export interface BgpPlan {
  /** An IPv4 address; of a node without one it is derived from the name of the node. */
  readonly routerId: Address;
  readonly asNumber: number;
  /** The addresses of the node. */
  readonly addresses: ByFamily<Address>;
  /** The port that BGP listens on. */
  readonly listenPort: number;
  /** `node`: listens on the addresses of the node only. */
  readonly listenOn: "all" | "node";
  readonly log: BgpLog;
  /** What this node originates: blocks, single addresses, pod CIDRs, service CIDRs. Static routes that never enter the kernel. */
  readonly announced: readonly Prefix[];
  /**
   * Of all routes, own or learned from a peer, those within these networks are sent to peers; other routes only if an
   * export rule of the session accepts them. Pools, pod CIDRs of all nodes, service CIDRs, own blocks outside every pool.
   */
  readonly exported: readonly Prefix[];
  /**
   * Of the routes of nodes of the mesh, those within these networks are accepted, unless they are within `withheld`: what
   * their own plans send. Pools, pod CIDRs of all nodes, service CIDRs, blocks of other nodes outside every pool.
   */
  readonly accepted: readonly Prefix[];
  /** Routes within these networks are sent to nobody, unless an export rule of the session accepts them: `disableBGPExport`. */
  readonly withheld: readonly Prefix[];
  /** Of services. A learned route within these networks is not sent with this node as its next hop: packets would end here. */
  readonly services: readonly Prefix[];
  /**
   * Learned routes within these networks are not put into the kernel: their pools have a tunnel mode, and the agent routes
   * them. Of these, single addresses are not sent with this node as their next hop.
   */
  readonly tunnelled: readonly Prefix[];
  /** Communities are added to a sent route within each of these networks, whatever the session. */
  readonly advertisements: readonly BgpAdvertisement[];
  /** Interfaces whose networks do not resolve next hops; `*` stands for any text. Those of pods are always ignored. */
  readonly ignoredInterfaces: readonly string[];
  /** By name. */
  readonly sessions: readonly BgpSession[];
  /** For people: which peer or setting cannot be carried out, and why. Never a password. */
  readonly problems: readonly string[];
}

export type BgpLog = "Debug" | "Info" | "Warning" | "Error" | "Fatal";

/** Carries the routes of the family of `address` only. */
export interface BgpSession {
  /** Unique, and a symbol of BIRD: `Mesh_10_0_0_1`, `Node_fd00__1_port_1790`; at most 64 of `A-Z a-z 0-9 _`. */
  readonly name: string;
  /** As `vendorctl node status` shows it. */
  readonly kind: "node-to-node mesh" | "node specific" | "global";
  /** For people: the BGPPeer, or the node of the mesh. */
  readonly from: string;
  readonly address: Address;
  /** The port of the peer. */
  readonly port: number;
  readonly localAs: number;
  readonly peerAs: number;
  /** The address that it speaks from; `undefined`: the kernel chooses. */
  readonly source: Address | undefined;
  /** A secret: never in a log, a status or an error. */
  readonly password: string | undefined;
  /** It waits for the connection of the peer: of two nodes, the one with the lower address. */
  readonly passive: boolean;
  /** The peer is a client of this route reflector. */
  readonly reflector: { readonly clusterId: string } | undefined;
  /** `automatic`: as BGP defines it, own address for own routes and for other ASs. */
  readonly nextHop: "automatic" | "self" | "keep";
  /** Announced graceful restart time. `undefined`: the default, 120 s. */
  readonly restartSeconds: number | undefined;
  /** How often the own AS may be in the path of a learned route. */
  readonly allowedOwnAs: number;
  /** Packets of the peer must come from at most this many hops away; `undefined`: from anywhere. */
  readonly ttlSecurityHops: number | undefined;
  /** The first rule that matches decides. A learned route that none matches is accepted. */
  readonly importRules: readonly BgpRule[];
  /** The first rule that matches decides. If none matches, `withheld` and then `exported` of the plan decide. */
  readonly exportRules: readonly BgpRule[];
}

/** A rule without conditions matches every route. */
export interface BgpRule {
  readonly action: "accept" | "reject";
  readonly network: BgpNetworkMatch | undefined;
  /** Only routes that were learned by BGP. */
  readonly onlyLearned: boolean;
  /** Only routes whose next hop is on an interface of this name; `*` stands for any text. */
  readonly interface: string | undefined;
}

export interface BgpNetworkMatch {
  readonly prefix: Prefix;
  /** The prefix lengths of routes within `prefix` that match; both ends included. Equality: both are `prefix.length`. */
  readonly lengths: { readonly from: number; readonly to: number };
  /** Routes that the above does not match. */
  readonly isNegated: boolean;
}

export interface BgpAdvertisement {
  readonly prefix: Prefix;
  readonly communities: readonly BgpCommunity[];
}

/** Two numbers of 16 bits (standard), or three of 32 (large). */
export type BgpCommunity = readonly [number, number] | readonly [number, number, number];
