/**
 * The table that masquerades what the pods of pools with `natOutgoing` send to
 * addresses outside all pools: its name, and how an ADD sees in one small read
 * that it is up to date. Its rules are in nat-rules.ts, which is loaded only if it is not.
 */
import { identity } from "../identity.ts";
import { formatPrefix, type Prefix } from "../ip/prefix.ts";
import type { TableReference } from "../linux/nftables/ruleset.ts";

export interface NatPool {
  readonly cidr: Prefix;
  readonly natOutgoing: boolean;
}

export const NAT_TABLE: TableReference = { family: "inet", name: identity.natTable };

/** How many rules the table has, each with the comment `natComment()`. */
export const NAT_RULE_COUNT = 2;

/** Changes with every change of the rules, so that an upgrade replaces them. */
const RULES_VERSION = 1;

const COMMENT_PREFIX = "pools ";

export function isNatComment(comment: string): boolean {
  return comment.startsWith(COMMENT_PREFIX);
}

/** Identifies the pools that the table was written for. `undefined`: no pool masquerades, and there is no table. */
export function natComment(pools: readonly NatPool[]): string | undefined {
  if (!pools.some(({ natOutgoing }) => natOutgoing)) return undefined;
  const texts = pools.map(({ cidr, natOutgoing }) => `${formatPrefix(cidr)} ${natOutgoing}`);
  return `${COMMENT_PREFIX}${Bun.hash([RULES_VERSION, ...texts.sort()].join()).toString(16)}`;
}
