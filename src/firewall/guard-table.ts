/** The table that drops packets which pods send from addresses that are not their own. Its rule is in guard-rules.ts. */
import { identity } from "../identity.ts";
import type { TableReference } from "../linux/nftables/ruleset.ts";

export const GUARD_TABLE: TableReference = { family: "inet", name: identity.guardTable };

/** Changes with every change of the rule, so that an upgrade replaces it. */
export const GUARD_COMMENT = "pods send from their own addresses, version 1";
