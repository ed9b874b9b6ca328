/**
 * The table that lets nobody but this host itself speak BGP in its name, as data. Pure.
 *
 *   packet to the BGP port of a peer, ready to leave ─▶ its source was translated to an address of this host? ──▶ counted, dropped
 *                                                    ─▶ of a process of this host that is not root's?         ──▶ counted, dropped
 *
 * A peer knows this host by its address alone, unless there is a password: a pod that is masqueraded, or a user of this
 * host, could take over the session and announce what it likes. Comes after source NAT, so it does not matter whose rule
 * translates.
 */
import { identity } from "../identity.ts";
import { type Address, addressBits, addressBytes, type Family } from "../ip/address.ts";
import type { Expression } from "../linux/nftables/expression.ts";
import { loadAddress, loadPort, matchFamily, matchProtocol, verdict } from "../linux/nftables/match.ts";
import {
  changesOf,
  type NftChange,
  type NftRule,
  type Ruleset,
  type TableReference,
} from "../linux/nftables/ruleset.ts";
import type { NftElement } from "../linux/nftables/set.ts";
import { concatenate, hostNumber, portValue } from "../linux/nftables/value.ts";

export const BGP_TABLE: TableReference = { family: "inet", name: identity.bgpTable };

/** Where a peer of this host listens. */
export interface BgpEnd {
  readonly address: Address;
  readonly port: number;
}

const CHAIN = "postrouting";
/** After source NAT, which is 100. */
const PRIORITY = 150;
const TCP = 6;
/** IPS_SRC_NAT: the source of the connection is translated. Not set if the translation changes nothing. */
const TRANSLATED = 0x10;
const ROOT = 0;
const FAMILIES = [4, 6] as const;

/** Changes with every change of the rules, so that an upgrade replaces them. */
const COMMENT = "only BIRD of this host, version 1";
const RULE_COUNT = 4;

export function isBgpTableIntact(rules: readonly Pick<NftRule, "comment">[]): boolean {
  return rules.length === RULE_COUNT && rules.every(({ comment }) => comment === COMMENT);
}

export function peerSet(family: Family): string {
  return `peers${family}`;
}

/** Replaces the table, whatever it was, in one batch. */
export function bgpTableChanges(peers: readonly BgpEnd[]): readonly NftChange[] {
  return [...bgpTableRemoval(), ...changesOf(bgpRuleset(peers))];
}

/** Succeeds whether or not the table exists. */
export function bgpTableRemoval(): readonly NftChange[] {
  const table = BGP_TABLE;
  return [
    { kind: "add-table", table },
    { kind: "delete-table", table },
  ];
}

export function peerElements(peers: readonly BgpEnd[], family: Family): readonly NftElement[] {
  const own = peers.filter(({ address }) => address.family === family);
  return own.map(({ address, port }) => ({ key: concatenate(addressBytes(address), portValue(port)) }));
}

function bgpRuleset(peers: readonly BgpEnd[]): Ruleset {
  return {
    table: BGP_TABLE,
    sets: FAMILIES.map((family) => ({
      name: peerSet(family),
      key: [family === 4 ? "ipv4_addr" : "ipv6_addr", "inet_service"],
    })),
    chains: [{ name: CHAIN, base: { type: "filter", hook: CHAIN, priority: PRIORITY, policy: "accept" } }],
    rules: FAMILIES.flatMap((family) => [dropIf(family, IS_TRANSLATED), dropIf(family, IS_NOT_OF_ROOT)]),
    elements: FAMILIES.map((family) => ({ set: peerSet(family), elements: peerElements(peers, family) })).filter(
      ({ elements }) => elements.length > 0,
    ),
  };
}

const IS_TRANSLATED: readonly Expression[] = [
  { kind: "ct", key: "status", to: 0 },
  { kind: "bitwise", from: 0, to: 0, mask: hostNumber(TRANSLATED), flip: hostNumber(0) },
  { kind: "compare", operator: "equal", from: 0, value: hostNumber(TRANSLATED) },
];

/** Packets that this host forwards have no user. */
const IS_NOT_OF_ROOT: readonly Expression[] = [
  { kind: "meta", key: "skuid", to: 0 },
  { kind: "compare", operator: "different", from: 0, value: hostNumber(ROOT) },
];

function dropIf(family: Family, conditions: readonly Expression[]): NftRule {
  return {
    chain: CHAIN,
    expressions: [
      ...matchFamily(family),
      ...matchProtocol(TCP),
      loadAddress(family, "destination", 0),
      loadPort("destination", addressBits(family) / 32),
      { kind: "lookup", set: peerSet(family), from: 0 },
      ...conditions,
      { kind: "counter" },
      verdict({ kind: "drop" }),
    ],
    comment: COMMENT,
  };
}
