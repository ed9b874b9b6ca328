/** What the admin tool reads from the kernel of the host that it runs on. */
import type { DroppingChain, PartlyDroppingChain } from "../../firewall/forward-chains.ts";
import type { TableState } from "../../firewall/table-states.ts";
import type { Family } from "../../ip/address.ts";

export interface HostFacts {
  readonly forwarding: { readonly ipv4: boolean; readonly ipv6: boolean };
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
