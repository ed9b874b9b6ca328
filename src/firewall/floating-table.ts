/** The table that leads floating IPs to pods of this node: its name, and whether its rules are in place. Its rules are in floating-rules.ts. */
import { identity } from "../identity.ts";
import type { Family } from "../ip/address.ts";
import type { TableReference } from "../linux/nftables/ruleset.ts";

export const FLOATING_TABLE: TableReference = { family: "inet", name: identity.floatingTable };

/** Prerouting, output and postrouting, each for both families. */
const FLOATING_RULE_COUNT = 6;

/** Changes with every change of the rules, so that an upgrade replaces them. */
export const FLOATING_COMMENT = "floating IPs lead to pods of this node, version 1";

export type FloatingMapPurpose = "external" | "hairpin";

export function floatingMap(purpose: FloatingMapPurpose, family: Family): string {
  return `${purpose}${family}`;
}

export function isFloatingIntact(rules: readonly { readonly comment?: string }[]): boolean {
  return rules.length === FLOATING_RULE_COUNT && rules.every(({ comment }) => comment === FLOATING_COMMENT);
}
