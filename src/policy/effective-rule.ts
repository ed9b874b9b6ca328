/**
 * A rule of a policy after everything relative is resolved: names of protocols are numbers, selectors include the
 * namespace and the service account, a peer refers to sets of addresses. What the renderer turns into instructions.
 */

import type { HttpMatch } from "../http/http-match.ts";
import type { Family } from "../ip/address.ts";
import type { Prefix } from "../ip/prefix.ts";

export type Direction = "ingress" | "egress";

export interface EffectiveRule {
  readonly action: "Allow" | "Deny" | "Log" | "Pass";
  /** Both families if absent. */
  readonly family?: Family;
  /** IP protocol numbers. */
  readonly protocol?: number;
  readonly notProtocol?: number;
  readonly icmp?: IcmpMatch;
  readonly notIcmp?: IcmpMatch;
  readonly source: EffectivePeer;
  readonly destination: EffectivePeer;
  /** Only requests that a sidecar has decided about. */
  readonly http?: HttpMatch;
}

/** At least one of both. */
export interface IcmpMatch {
  readonly type: number;
  readonly code?: number;
}

/** All criteria must match; an absent one matches everything. */
export interface EffectivePeer {
  /** In at least one of them; an empty list matches nothing. */
  readonly nets?: readonly Prefix[];
  /** In none of them. */
  readonly notNets: readonly Prefix[];
  /** A member of each. */
  readonly members: readonly SetReference[];
  /** A member of none. */
  readonly notMembers: readonly SetReference[];
  /** One of these numbers, or a member of the named ports. */
  readonly ports?: PortMatch;
  /** None of them. */
  readonly notPorts?: PortMatch;
  /** Selects the service accounts of authenticated requests. Only of the source of ingress rules; packets have none. */
  readonly identities?: string;
}

export interface PortMatch {
  /** Both ends included. */
  readonly ranges: readonly { readonly first: number; readonly last: number }[];
  readonly named?: NamedPortReference;
}

/** Addresses that change with the cluster: the content of a kernel set of each family. */
export type SetReference =
  /** The addresses of endpoints and network sets whose labels are selected. `selector`: its canonical text. */
  | { readonly kind: "selected"; readonly selector: string }
  /** The addresses behind a service, each with its protocols and ports if it is a destination. */
  | { readonly kind: "service"; readonly namespace: string; readonly name: string; readonly withPorts: boolean };

/** Address, protocol and port of each selected endpoint that declares a port of one of these names and this protocol. */
export interface NamedPortReference {
  readonly kind: "named port";
  readonly selector: string;
  readonly protocol: number;
  /** Sorted, each once: however many there are, a rule looks up one set. */
  readonly names: readonly string[];
}
