/**
 * The table that drops tunnelled packets of hosts that are not nodes, as data. Pure.
 *
 *   packet to this host ─▶ VXLAN or IPIP, and its source is not the address of a node? ──▶ counted, dropped
 *
 * Without it anybody who reaches this host could send packets to its pods past the policy of the sender. A node that joins
 * or leaves changes one element.
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
import { matchTunnel } from "../linux/nftables/tunnel-match.ts";

export const TUNNEL_TABLE: TableReference = { family: "inet", name: identity.tunnelTable };

/** As the plan of routes names them. */
export const GUARDED_TUNNELS = ["vxlan4", "vxlan6", "ipip4"] as const;

export type GuardedTunnel = (typeof GUARDED_TUNNELS)[number];

const CHAIN = "input";
/** Before the tables that filter. */
const PRIORITY = -10;
const FAMILIES = [4, 6] as const;

export function senderSet(family: Family): string {
  return `senders${family}`;
}

/** Changes with every change of the rules, so that an upgrade replaces them. */
export function ruleComment(tunnel: GuardedTunnel): string {
  return `${tunnel}: only from nodes, version 1`;
}

function tunnelRuleset(tunnels: readonly GuardedTunnel[], senders: readonly Address[]): Ruleset {
  return {
    table: TUNNEL_TABLE,
    sets: FAMILIES.map((family) => ({ name: senderSet(family), key: [family === 4 ? "ipv4_addr" : "ipv6_addr"] })),
    chains: [{ name: CHAIN, base: { type: "filter", hook: "input", priority: PRIORITY, policy: "accept" } }],
    rules: tunnels.map((tunnel) => {
      const family = tunnel === "vxlan6" ? 6 : 4;
      const match = [...matchFamily(family), ...matchTunnel(tunnel === "ipip4" ? "ipip" : "vxlan")];
      return { chain: CHAIN, expressions: [...match, ...dropStrangers(family)], comment: ruleComment(tunnel) };
    }),
    elements: elementsOf(senders),
  };
}

/** Replaces the table, whatever it was, in one batch. */
export function tunnelTableChanges(
  tunnels: readonly GuardedTunnel[],
  senders: readonly Address[],
): readonly NftChange[] {
  return [...tableRemoval(TUNNEL_TABLE), ...changesOf(tunnelRuleset(tunnels, senders))];
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

function dropStrangers(family: Family): readonly Expression[] {
  return [
    loadAddress(family, "source", 0),
    { kind: "lookup", set: senderSet(family), from: 0, isInverted: true },
    { kind: "counter" },
    verdict({ kind: "drop" }),
  ];
}

function elementsOf(
  addresses: readonly Address[],
): readonly { readonly set: string; readonly elements: readonly NftElement[] }[] {
  return FAMILIES.map((family) => ({
    set: senderSet(family),
    elements: addresses.filter((each) => each.family === family).map((each) => ({ key: addressBytes(each) })),
  })).filter(({ elements }) => elements.length > 0);
}
