/** Says in words who decided about a traced packet. Pure. */
import { POLICY_TABLE } from "../../../firewall/policy-table.ts";
import { identity } from "../../../identity.ts";
import type { KnownRule } from "../../../linux/nftables/read.ts";
import { originWords, readRuleComment } from "../../../policy/table/rule-comment.ts";
import type { Decision } from "./traced-packets.ts";

export interface DecisionWords {
  /** What decided. */
  readonly by: string;
  /** Whether it is a rule of a policy, a table of this product that is not about policy, or another program's. */
  readonly owner: "policy" | "product" | "other";
  /** A command that shows the chain; for chains of others. */
  readonly see?: string;
}

const OWN_TABLES: ReadonlySet<string> = new Set([
  identity.guardTable,
  identity.natTable,
  identity.floatingTable,
  identity.hostPortTable,
]);

/** `rules`: of the chain, in order. */
export function decisionWords({ table, chain, handle, verdict }: Decision, rules: readonly KnownRule[]): DecisionWords {
  const position = rules.findIndex((rule) => rule.handle === handle);
  const rule = rules[position];
  if (table.family === POLICY_TABLE.family && table.name === POLICY_TABLE.name)
    return { by: policyWords(chain, rule, verdict), owner: "policy" };
  const place = `chain "${chain}" of table ${table.family} "${table.name}"`;
  const what = handle === undefined ? `the policy of ${place}` : `${ruleWords(position, handle)} of ${place}`;
  const note = rule?.comment === undefined ? "" : ` ("${rule.comment}")`;
  if (OWN_TABLES.has(table.name)) return { by: `${what}${note}`, owner: "product" };
  const see = `nft -a list chain ${table.family} ${table.name} ${chain}`;
  return { by: `${what}${note}, which belongs to another program`, owner: "other", see };
}

/** `prefix`: what the rule of the policy table that dropped the packet reports. */
export function droppedBy(prefix: string): DecisionWords {
  return { by: originWords(readRuleComment(prefix)), owner: "policy" };
}

const OF_KNOWN_CONNECTION = "connection tracking: it belongs to a connection that was allowed before";

export function isOfKnownConnection({ by }: DecisionWords): boolean {
  return by === OF_KNOWN_CONNECTION;
}

function ruleWords(position: number, handle: bigint): string {
  return position < 0 ? `a rule (handle ${handle}, gone meanwhile)` : `rule ${position + 1} (handle ${handle})`;
}

function policyWords(chain: string, rule: KnownRule | undefined, verdict: Decision["verdict"]): string {
  if (rule?.comment !== undefined) return originWords(readRuleComment(rule.comment));
  if (rule?.expressions[0]?.kind === "ct") {
    return verdict === "accept" ? OF_KNOWN_CONNECTION : originWords({ kind: "invalid" });
  }
  return `chain "${chain}" of the policy table`;
}
