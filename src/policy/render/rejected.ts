/**
 * What happens to packets that policy denies: they are dropped, or rejected, if the node's denyAction says so.
 *
 *   rule of a policy, end of a tier or of the profiles ──▶ counted, reported ──▶ dropped
 *                                                                            └─▶ rejected ─▶ TCP: a reset
 *                                                                                          └▶ all others: ICMP "administratively prohibited"
 *
 * Only where a policy of a workload or host decides about a packet that the kernel tracks, at input, forward and output. All other
 * drops stay silent: of guards, of packets without a connection, of interfaces that are not known, of doNotTrack and preDNAT policies.
 * Why: docs/decisions/deny-action.md. Pure.
 */
import { type Expression, ICMPX_CODE } from "../../linux/nftables/expression.ts";
import { matchProtocol, verdict } from "../../linux/nftables/match.ts";
import type { RuleCount } from "../../linux/nftables/rule-counts.ts";
import type { Verdict } from "../../linux/nftables/verdict.ts";
import type { DesiredChain } from "../table/desired-table.ts";
import { chain } from "./chain-parts.ts";

export type DenyAction = "Drop" | "Reject";

export const REJECTED = "rejected";

const TCP = 6;

/**
 * It exists whatever the action is: otherwise a packet that is on its way to it when the action changes would fall through to
 * the rules after the one that denied it. The kernel answers neither ICMP errors nor resets, broadcasts and multicasts.
 */
export const REJECTED_CHAIN: DesiredChain = chain(REJECTED, [
  { expressions: [...matchProtocol(TCP), { kind: "reject", type: "tcp reset", code: 0 }] },
  { expressions: [{ kind: "reject", type: "icmpx", code: ICMPX_CODE.adminProhibited }] },
]);

const TO_REJECTED: Expression = verdict({ kind: "goto", chain: REJECTED });

/** Its denials go to the chain above. */
export function withRejections(desired: DesiredChain): DesiredChain {
  if (!desired.rules.some(({ isDenial }) => isDenial === true)) return desired;
  const rules = desired.rules.map((rule) =>
    rule.isDenial === true ? { ...rule, expressions: [...rule.expressions.slice(0, -1), TO_REJECTED] } : rule,
  );
  return { ...desired, rules };
}

/** What a rule decides, whether denied packets are rejected or not. */
export function decisionOf(decided: Verdict | undefined): Verdict["kind"] | undefined {
  return decided?.kind === "goto" && decided.chain === REJECTED ? "drop" : decided?.kind;
}

/** The counters of denials, whatever happens to what is denied. */
export function withDecisions(counts: readonly RuleCount[]): readonly RuleCount[] {
  return counts.map((count) => (count.target === REJECTED ? { ...count, verdict: "drop" } : count));
}
