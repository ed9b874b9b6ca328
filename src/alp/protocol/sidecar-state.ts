/**
 * What a sidecar must know to decide the requests to its pod, as the node agent sends it: plain JSON, version 1 of the
 * protocol. Everything that depends on labels is resolved: rules refer to sets of addresses or identities.
 */
import type { HttpMatch } from "../../http/http-match.ts";

/** In the order of evaluation; all else of the state is referred to from here. */
export interface SidecarEvaluation {
  readonly tiers: readonly SidecarTier[];
  /** The rules of the pod's profiles, in order. */
  readonly profiles: readonly SidecarRule[];
}

export interface SidecarTier {
  readonly name: string;
  readonly defaultAction: "Deny" | "Pass";
  /** Keys of policies. */
  readonly policies: readonly string[];
}

export interface SidecarPolicy {
  /** `NAMESPACE/NAME`, or `NAME` of a global policy. */
  readonly title: string;
  readonly rules: readonly SidecarRule[];
}

/** A rule that can match TCP. Log rules are left out. All criteria must match; an absent one matches everything. */
export interface SidecarRule {
  /** Index in `spec.ingress` of the policy, for explanations. */
  readonly index: number;
  readonly action: "Allow" | "Deny" | "Pass";
  readonly family?: 4 | 6;
  readonly source: SidecarPeer;
  readonly destination: SidecarPeer;
  /** Present: matches only HTTP requests. */
  readonly http?: HttpMatch;
}

export interface SidecarPeer {
  /** In at least one of them; an empty list matches nothing. */
  readonly nets?: readonly string[];
  readonly notNets?: readonly string[];
  /** A member of each: the names of sets of addresses and networks, or of `ADDRESS 6 PORT` for services with ports. */
  readonly sets?: readonly string[];
  readonly notSets?: readonly string[];
  readonly ports?: SidecarPorts;
  readonly notPorts?: SidecarPorts;
  /**
   * The name of a set of identities `NAMESPACE/ACCOUNT`: a request that is authenticated must be of one of them. A request
   * without an identity is judged by its address alone, as packets are. Only of a source.
   */
  readonly identities?: string;
}

export interface SidecarPorts {
  /** Both ends included. */
  readonly ranges: readonly (readonly [first: number, last: number])[];
  /** The name of a set of `ADDRESS 6 PORT`: endpoints that declare a port of that name. */
  readonly set?: string;
}

/** One change of the state, applied as a whole. `null` deletes. */
export interface SidecarUpdate {
  readonly type: "update";
  /** Grows by one; the sidecar acknowledges it with `applied`. The first update has the whole state. */
  readonly revision: number;
  /** The addresses of the pod. */
  readonly addresses?: readonly string[];
  readonly evaluation?: SidecarEvaluation;
  readonly policies?: Readonly<Record<string, SidecarPolicy | null>>;
  /** A whole set, a change of one, or `null`. */
  readonly sets?: Readonly<Record<string, SidecarSet | SidecarSetChange | null>>;
}

export interface SidecarSet {
  readonly members: readonly string[];
}

export interface SidecarSetChange {
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

/** The lines of a conversation, one JSON text each. */
export type FromSidecar = Hello | Applied;
export type FromAgent = Welcome | Refused | SidecarUpdate;

/** First, by the sidecar: the version of the protocol that it speaks, and its release. */
export interface Hello {
  readonly type: "hello";
  readonly protocol: number;
  readonly version: string;
}

/** The agent speaks the protocol of the sidecar. */
export interface Welcome {
  readonly type: "welcome";
  readonly protocol: number;
  readonly version: string;
}

/** The connection ends. A sidecar that is newer than the agent is refused; the message says what to do. */
export interface Refused {
  readonly type: "refused";
  readonly message: string;
}

export interface Applied {
  readonly type: "applied";
  readonly revision: number;
}

export const SIDECAR_PROTOCOL = 1;
