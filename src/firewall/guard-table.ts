/** The table that drops packets which pods send from sources that are not allowed to them. Its rules are in guard-rules.ts. */
import { identity } from "../identity.ts";
import type { Family } from "../ip/address.ts";
import type { TableReference } from "../linux/nftables/ruleset.ts";

export const GUARD_TABLE: TableReference = { family: "inet", name: identity.guardTable };

/** Three for each family. */
const GUARD_RULE_COUNT = 6;

/** Changes with every change of the rules, so that an upgrade replaces them. */
export const GUARD_COMMENT = "pods send from their own addresses and allowed prefixes, version 3";

/** Which sources a link may use beside the pod's own addresses: link index and ranges of addresses. */
export function allowedSet(family: Family): string {
  return `allowed${family}`;
}

/**
 * Addresses of pools and nodes, which no pod may use as a source unless the administrator has listed them. Of a new table
 * they are all addresses, until the node agent or `node restore` has written those of the cluster: ADD does not know them.
 */
export function clusterSet(family: Family): string {
  return `cluster${family}`;
}

export function isIntact(rules: readonly { readonly comment?: string }[]): boolean {
  return rules.length === GUARD_RULE_COUNT && rules.every(({ comment }) => comment === GUARD_COMMENT);
}
