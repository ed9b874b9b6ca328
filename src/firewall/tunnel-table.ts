/**
 * The table that drops tunnelled packets of hosts that are not nodes, as data. Pure.
 *
 *   packet to this host ─▶ VXLAN or IPIP, and its source is not the address of a node? ──▶ counted, dropped
 *                       └▶ VXLAN or IPIP, and its destination was translated? ──────────▶ counted, dropped
 *   packet that leaves ──▶ the same
 *
 * Without it anybody who reaches this host could send packets to its pods past the policy of the sender. A Service whose
 * endpoint is the tunnel port of a node would do the same for anybody who reaches the Service: the node that translates
 * sends on with its own address, as the sender. Nodes never send to each other by the address of a Service, and a host that only
 * routes tunnelled packets of others translates nothing. A node that joins or leaves changes one element.
 */
import { identity } from "../identity.ts";
import { type Address, addressBytes, addressFromBytes, type Family } from "../ip/address.ts";
import type { Expression } from "../linux/nftables/expression.ts";
import { loadAddress, matchFamily, verdict } from "../linux/nftables/match.ts";
import {
  changesOf,
  type NftChange,
  type Ruleset,
  type TableReference,
  tableRemoval,
} from "../linux/nftables/ruleset.ts";
import type { NftElement } from "../linux/nftables/set.ts";
import { matchTunnel, VXLAN_PORT } from "../linux/nftables/tunnel-match.ts";
import { hostNumber } from "../linux/nftables/value.ts";

export const TUNNEL_TABLE: TableReference = { family: "inet", name: identity.tunnelTable };

/** As the plan of routes names them. */
export const GUARDED_TUNNELS = ["vxlan4", "vxlan6", "ipip4"] as const;

export type GuardedTunnel = (typeof GUARDED_TUNNELS)[number];

/** After the translation of destinations, which precedes both. */
const HOOKS = ["input", "postrouting"] as const;
/** Before the tables that filter. */
const PRIORITY = -10;
const FAMILIES = [4, 6] as const;

export interface GuardedPorts {
  readonly tunnels: readonly GuardedTunnel[];
  /** Also that of a device that is about to get another. Absent: the usual one. */
  readonly vxlanPorts?: readonly number[];
}

export function senderSet(family: Family): string {
  return `senders${family}`;
}

/** Of the rules that the table has for these tunnels, in the order in which the kernel lists them. */
export function ruleComments(guarded: GuardedPorts): readonly string[] {
  return rulesOf(guarded).map(({ comment }) => comment);
}

/** Also of a rule of a former release. */
export function tunnelOfComment(comment: string): GuardedTunnel | undefined {
  return GUARDED_TUNNELS.find((tunnel) => comment.startsWith(`${tunnel}: `));
}

function tunnelRuleset(guarded: GuardedPorts, senders: readonly Address[]): Ruleset {
  return {
    table: TUNNEL_TABLE,
    sets: FAMILIES.map((family) => ({ name: senderSet(family), key: [family === 4 ? "ipv4_addr" : "ipv6_addr"] })),
    chains: HOOKS.map((hook) => ({ name: hook, base: { type: "filter", hook, priority: PRIORITY, policy: "accept" } })),
    rules: rulesOf(guarded),
    elements: elementsOf(senders),
  };
}

/** The comments change with every change of the rules, so that an upgrade replaces them. */
function rulesOf({ tunnels, vxlanPorts = [VXLAN_PORT] }: GuardedPorts) {
  return HOOKS.flatMap((chain) =>
    tunnels.flatMap((tunnel) => {
      const family = tunnel === "vxlan6" ? 6 : 4;
      return (tunnel === "ipip4" ? [VXLAN_PORT] : vxlanPorts).flatMap((port) => {
        const match = [...matchFamily(family), ...matchTunnel(tunnel === "ipip4" ? "ipip" : "vxlan", port)];
        const place = port === VXLAN_PORT ? "" : ` at port ${port}`;
        const rule = (judgement: readonly Expression[], title: string) => ({
          ...{ chain, expressions: [...match, ...judgement, { kind: "counter" } as const, verdict({ kind: "drop" })] },
          comment: `${tunnel}: ${title}${place}, version 2`,
        });
        return [
          ...(chain === "input" ? [rule(isOfStranger(family), "only from nodes")] : []),
          rule(IS_TRANSLATED, "not by a Service"),
        ];
      });
    }),
  );
}

/** Replaces the table, whatever it was, in one batch. */
export function tunnelTableChanges(guarded: GuardedPorts, senders: readonly Address[]): readonly NftChange[] {
  return [...tableRemoval(TUNNEL_TABLE), ...changesOf(tunnelRuleset(guarded, senders))];
}

/** Elements to remove and to add, in one batch. */
export function senderChanges(removed: readonly Address[], added: readonly Address[]): readonly NftChange[] {
  const table = TUNNEL_TABLE;
  return [
    ...elementsOf(removed).map((list): NftChange => ({ kind: "delete-elements", table, ...list })),
    ...elementsOf(added).map((list): NftChange => ({ kind: "add-elements", table, ...list })),
  ];
}

export function senderOfElement({ key }: NftElement): Address | undefined {
  return addressFromBytes(key);
}

function isOfStranger(family: Family): readonly Expression[] {
  return [loadAddress(family, "source", 0), { kind: "lookup", set: senderSet(family), from: 0, isInverted: true }];
}

/** As `ct status dnat` and `ct direction original` write it: the replies to a client that sends from the port of VXLAN pass. */
const DNATED = 1 << 5;
const ORIGINAL = 0;
const IS_TRANSLATED: readonly Expression[] = [
  { kind: "ct", key: "status", to: 0 },
  { kind: "bitwise", from: 0, to: 0, mask: hostNumber(DNATED), flip: hostNumber(0) },
  { kind: "compare", operator: "different", from: 0, value: hostNumber(0) },
  { kind: "ct", key: "direction", to: 0 },
  { kind: "compare", operator: "equal", from: 0, value: Uint8Array.of(ORIGINAL) },
];

function elementsOf(
  addresses: readonly Address[],
): readonly { readonly set: string; readonly elements: readonly NftElement[] }[] {
  return FAMILIES.map((family) => ({
    set: senderSet(family),
    elements: addresses.filter((each) => each.family === family).map((each) => ({ key: addressBytes(each) })),
  })).filter(({ elements }) => elements.length > 0);
}
