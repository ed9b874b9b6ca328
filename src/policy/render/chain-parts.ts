/** Rules and chains that the packets of workloads and of hosts have in common. Pure. */
import type { Expression } from "../../linux/nftables/expression.ts";
import { matchProtocol, verdict } from "../../linux/nftables/match.ts";
import type { BaseChain } from "../../linux/nftables/ruleset.ts";
import { hostNumber } from "../../linux/nftables/value.ts";
import type { Point } from "../point.ts";
import type { DesiredChain, DesiredRule } from "../table/desired-table.ts";
import { NEIGHBOUR_DISCOVERY } from "../table/rule-comment.ts";

const ICMPV6 = 58;
const STATE = { invalid: 1, established: 2, related: 4, new: 8, untracked: 64 } as const;
/** Multicast listeners, routers and neighbours: without them IPv6 does not work at all. */
const NEIGHBOUR_MESSAGES = [130, 131, 132, 133, 134, 135, 136, 143];

export type InterfaceKey = "iifname" | "oifname";

export function baseChain(
  name: string,
  { hook, priority }: Pick<BaseChain, "hook" | "priority">,
  rules: readonly DesiredRule[],
  point?: Point,
): DesiredChain {
  const base = { type: "filter", hook, priority, policy: "accept" } as const;
  return { chain: { name, base }, rules, ...(point === undefined ? {} : { point }) };
}

export function chain(name: string, rules: readonly DesiredRule[], point?: Point): DesiredChain {
  return { chain: { name }, rules, ...(point === undefined ? {} : { point }) };
}

/** To the chain that the verdict map has for the interface; a packet of any other interface continues. */
export function byInterface(key: InterfaceKey, map: string): DesiredRule {
  return {
    expressions: [
      { kind: "meta", key, to: 0 },
      { kind: "lookup", set: map, from: 0, to: "verdict" },
    ],
  };
}

/**
 * Packets of accepted connections, and errors about them, pass; what belongs to no connection is dropped.
 * `untracked`: what happens to packets without connection tracking; without it they continue.
 *
 * Not a map of verdicts: packets in a chain that is filled again would miss it.
 */
export function knownConnections({ untracked }: { readonly untracked?: "accept" } = {}): readonly DesiredRule[] {
  const accepted = STATE.established | STATE.related | (untracked === undefined ? 0 : STATE.untracked);
  return [
    { expressions: [...isOneOf(accepted), verdict({ kind: "accept" })] },
    { expressions: [...isOneOf(STATE.invalid), verdict({ kind: "drop" })] },
  ];
}

export function matchNewConnections(): readonly Expression[] {
  return isOneOf(STATE.new);
}

function isOneOf(states: number): readonly Expression[] {
  return [
    { kind: "ct", key: "state", to: 0 },
    { kind: "bitwise", from: 0, to: 0, mask: hostNumber(states), flip: hostNumber(0) },
    { kind: "compare", operator: "different", from: 0, value: hostNumber(0) },
  ];
}

/** The kernel does not track these packets, so they belong to no connection. */
export function neighbourDiscovery(): DesiredRule {
  const elements = NEIGHBOUR_MESSAGES.map((type) => ({ key: Uint8Array.of(type) }));
  return {
    expressions: [
      ...matchProtocol(ICMPV6),
      { kind: "payload", base: "transport", offset: 0, length: 1, to: 0 },
      { kind: "lookup", set: { key: ["icmpv6_type"], elements }, from: 0 },
      verdict({ kind: "accept" }),
    ],
    comment: NEIGHBOUR_DISCOVERY,
  };
}

/** All packets are counted and denied. */
export function deny(comment: string): DesiredRule {
  return { ...drop(comment), isDenial: true };
}

/** Packets that meet the conditions are counted and dropped; without conditions, all. Their senders are never told. */
export function drop(comment: string, conditions: readonly Expression[] = []): DesiredRule {
  return { expressions: [...conditions, { kind: "counter" }, verdict({ kind: "drop" })], comment };
}
