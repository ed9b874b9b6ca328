/** What the admin tool reads from the kernel of the host that it runs on. */
import type { KnownStatus } from "../../datastore/replica/status-file.ts";
import type { DroppingChain, PartlyDroppingChain } from "../../firewall/forward-chains.ts";
import type { TableState } from "../../firewall/table-states.ts";
import type { Family } from "../../ip/address.ts";
import type { RefusedClaims } from "../../ipam/refused-claims.ts";
import type { BirdRoute } from "../../routing/bird/routes-status.ts";
import type { SessionStatus } from "../../routing/bird/sessions-status.ts";
import type { BirdState } from "../../routing/bird/state.ts";

export interface HostFacts {
  readonly forwarding: { readonly ipv4: boolean; readonly ipv6: boolean };
  /** Links by which the host has an IPv6 default route that its kernel drops when the host forwards IPv6. */
  readonly advertisedUplinks: readonly string[];
  /** Whether the old `iptables-legacy` has a filter table, which nftables does not show. */
  readonly hasLegacyFilter: boolean;
  readonly droppingChains: readonly DroppingChain[];
  /** Chains of other firewalls that drop some forwarded packets. */
  readonly partlyDroppingChains: readonly PartlyDroppingChain[];
  /** Of the product itself. */
  readonly tables: {
    readonly nat: TableState;
    readonly floating: TableState;
    readonly guard: TableState;
    readonly hostPorts: TableState;
  };
  readonly agent: AgentState;
  /** Whether the node agent has set rules of network policy. */
  readonly hasPolicyTable: boolean;
  readonly podLinks: readonly PodLinkFacts[];
  /** Whether the guard table has the addresses of pools and nodes: until then no pod may use further sources. */
  readonly knowsClusterSources: boolean;
}

/** "running": or starting; "stopped": it has run since the host was started. */
export type AgentState = "running" | "stopped" | "not used";

/** What can be known of the agent without root, too. */
export interface AgentFacts extends Pick<HostFacts, "agent"> {
  /** `undefined`: only root may see it. */
  readonly hasPolicyTable: boolean | undefined;
}

/** The host's end of the link to a pod. */
export interface PodLinkFacts {
  readonly name: string;
  /** Names network and container. */
  readonly alias?: string;
  /** Of the addresses that are routed to the pod. */
  readonly families: readonly Family[];
  /** `rp_filter` that takes effect: 0 off, 1 strict, 2 loose. */
  readonly reversePath: number;
  /** Whether host ports of the pod were served on 127.0.0.1. */
  readonly servesLoopback: boolean;
  /** Whether the pod may use other sources than its addresses. */
  readonly allowsSources: boolean;
  /** Of which families the guard table has such sources for the link. */
  readonly allowedFamilies: readonly Family[];
}

/** What the kernel of a host can do, as far as the product needs it. */
export interface KernelFeatures {
  /** `6.1.0-18-amd64` */
  readonly release: string;
  readonly features: readonly KernelFeature[];
}

export interface KernelFeature {
  readonly name: string;
  /** What does not work without it. */
  readonly neededBy: string;
  /** "always", or only with the setting that `neededBy` names. */
  readonly need: "always" | "sometimes";
  /** What the kernel said when it was tried; absent if it works. */
  readonly failure?: string;
  /** The kernel module that has it. */
  readonly module?: string;
}

export interface RoutingFacts {
  readonly isAgentRunning: boolean;
  /** What the node agent says about BIRD; `undefined` if it has never said anything since the host started. */
  readonly state: BirdState | undefined;
  /** What BIRD itself says; `undefined` if it does not run. */
  readonly bird: BirdFacts | undefined;
  /** Of the main table: those of BIRD and of the node agent. */
  readonly kernelRoutes: readonly KernelRoute[];
  /** What annotations of this node's pods say without effect; the node agent wrote it. */
  readonly refusedClaims: readonly RefusedClaims[];
  /** Why routes to other nodes are missing, and records of theirs that do not count; the node agent wrote it. */
  readonly routingProblems: readonly string[];
  /** Policies that deny because they cannot be carried out, and resources that cannot be read; the node agent wrote it. */
  readonly policyProblems: readonly string[];
  /** What the node agent knew of the datastore when it last wrote it; `undefined` if it has not. */
  readonly datastore: KnownStatus | undefined;
}

export interface BirdFacts {
  readonly version: string;
  readonly routerId: string;
  readonly startedAt: string;
  /** It was killed, and waits for its peers before it changes routes. */
  readonly isRecovering: boolean;
  readonly sessions: readonly SessionStatus[];
  readonly routes: readonly BirdRoute[];
}

export interface KernelRoute {
  readonly family: 4 | 6;
  readonly destination: string;
  readonly writer: "BIRD" | "node agent";
  readonly kind: string;
  readonly gateway?: string;
  readonly link?: string;
}
