/** The table that leads floating IPs to pods of this node: its name, and whether its rules are in place. Its rules are in floating-rules.ts. */
import { identity } from "../identity.ts";
import type { Family } from "../ip/address.ts";
import type { TableReference } from "../linux/nftables/ruleset.ts";

export const FLOATING_TABLE: TableReference = { family: "inet", name: identity.floatingTable };

/** Prerouting, output and postrouting, each for both families. */
const FLOATING_RULE_COUNT = 6;

/**
 * Changes with every change of the rules, so that an upgrade replaces them. Since version 2 a pair is in the table only if it is
 * recorded on the host, or if nobody but the plugin writes the endpoints.
 */
export const FLOATING_COMMENT = "floating IPs lead to pods of this node, version 2";
const WITHOUT_RECORDS = "floating IPs lead to pods of this node, version 1";

export type FloatingMapPurpose = "external" | "hairpin";

export function floatingMap(purpose: FloatingMapPurpose, family: Family): string {
  return `${purpose}${family}`;
}

interface RuleHead {
  readonly comment?: string;
}

export function isFloatingIntact(rules: readonly RuleHead[]): boolean {
  return rules.length === FLOATING_RULE_COUNT && rules.every(({ comment }) => comment === FLOATING_COMMENT);
}

/** Whether a release wrote it that recorded nothing on the host. */
export function isFloatingWithoutRecords(rules: readonly RuleHead[]): boolean {
  return rules.some(({ comment }) => comment === WITHOUT_RECORDS);
}
