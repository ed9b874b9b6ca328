/** The hosts that a packet can pass, what is asked about it, and where it ended. */
import type { Hook } from "../../../src/linux/nftables/ruleset.ts";
import type { Packet } from "../../../src/policy/judge/packet.ts";
import type { ConnectionState } from "../../../test/support/interpret/packet-marks.ts";
import type { ModelLink, NetworkNamespace } from "../../kernel/model.ts";

/** A host of the cluster. */
export interface Machine {
  readonly name: string;
  readonly root: NetworkNamespace;
  /** Hosts of one segment reach each other without a router. The router knows the addresses of hosts only. */
  readonly segment: string;
}

export interface HookPassage {
  readonly hook: Hook;
  readonly iif: Readonly<ModelLink> | undefined;
  readonly oif: Readonly<ModelLink> | undefined;
  readonly packet: Packet;
}

/** What all chains of a hook say together. */
export interface HookVerdict {
  readonly verdict: "accept" | "drop";
  /** What decided, in words. */
  readonly by?: string | undefined;
  /** After address translation; absent if it is unchanged. */
  readonly packet?: Packet;
}

/** For one packet on one host: what rules write at a hook, they read at the next. */
export type AskHook = (passage: HookPassage) => HookVerdict;

export type EnterHost = (machine: Machine, state: ConnectionState) => AskHook;

export interface Network {
  readonly machines: readonly Machine[];
  readonly enter: EnterHost;
}

export interface Journey {
  /** `dropped`: by a rule. `lost`: anything else. */
  readonly end: "delivered" | "dropped" | "lost";
  /** Where it was delivered. */
  readonly namespace?: NetworkNamespace;
  /** As it arrived. */
  readonly packet: Packet;
  /** Every step, in words. */
  readonly path: readonly string[];
}
