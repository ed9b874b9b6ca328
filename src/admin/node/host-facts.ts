/** What the admin tool reads from the kernel of the host that it runs on. */
import type { DroppingChain } from "../../firewall/forward-chains.ts";

export interface HostFacts {
  readonly forwarding: { readonly ipv4: boolean; readonly ipv6: boolean };
  /** Whether the old `iptables-legacy` has a filter table, which nftables does not show. */
  readonly hasLegacyFilter: boolean;
  readonly droppingChains: readonly DroppingChain[];
}
