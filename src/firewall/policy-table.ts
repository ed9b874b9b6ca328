/** The table that enforces network policy. Only the node agent writes it; what is in it is computed in src/policy/. */
import { identity } from "../identity.ts";
import type { NetfilterAccess } from "../linux/netfilter-access.ts";
import { findTable } from "../linux/nftables/read.ts";
import type { TableReference } from "../linux/nftables/ruleset.ts";

export const POLICY_TABLE: TableReference = { family: "inet", name: identity.policyTable };

/** The log group (NFLOG) of the kernel to which rules of the table report the packets that they drop. Costs nothing while nobody listens. */
export const DROP_GROUP = 30_308;
/** No rule reports to it: who listens to the other one holds this one, also while it pauses. */
export const DROP_LOCK_GROUP = DROP_GROUP + 1;

/** The log group to which rules report the connections that they deny, up to a limit, for the collector of flows. */
export const FLOW_GROUP = DROP_LOCK_GROUP + 1;

export async function hasPolicyTable(netfilter: NetfilterAccess): Promise<boolean> {
  return (await netfilter.withSocket((socket) => findTable(socket, POLICY_TABLE))) !== undefined;
}
