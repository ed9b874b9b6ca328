/**
 * The table that lets nobody but root of this host speak BGP in its name, as data. Pure.
 *
 *   packet from the address of a session to its peer, ready to leave ─▶ of a process of root?                            ──▶ accepted
 *                                                                    ─▶ its source was translated, or of another user? ──▶ counted, dropped
 *
 * A peer knows this host by its address alone, unless there is a password: a pod that is masqueraded, or a user of this
 * host, could take over the session and announce what it likes. Comes after source NAT, so it does not matter whose rule
 * translates. Rules of the host may translate connections of BIRD as well (`masquerade fully-random`): root comes first.
 */
import { identity } from "../identity.ts";
import { type Address, addressBits, addressBytes } from "../ip/address.ts";
import type { Expression } from "../linux/nftables/expression.ts";
import { loadAddress, loadPort, matchFamily, matchProtocol, verdict } from "../linux/nftables/match.ts";
import {
  changesOf,
  type NftChange,
  type NftRule,
  type Ruleset,
  type TableReference,
  tableRemoval,
} from "../linux/nftables/ruleset.ts";
import type { NftElement, NftSet } from "../linux/nftables/set.ts";
import { concatenate, hostNumber, portValue } from "../linux/nftables/value.ts";

export const BGP_TABLE: TableReference = { family: "inet", name: identity.bgpTable };

/** A session as the packets of BIRD to its peer show it. */
export interface BgpEnd {
  /** Of the peer, and the port that it listens on. */
  readonly address: Address;
  readonly port: number;
  /** That this host speaks from; `undefined`: any. Other programs may hold sessions of their own from other addresses. */
  readonly source: Address | undefined;
}

const CHAIN = { postrouting: "postrouting", judged: "judged" } as const;
/** After source NAT, which is 100. */
const PRIORITY = 150;
const TCP = 6;
/** IPS_SRC_NAT: the source of the connection is translated. Not set if the translation changes nothing. */
const TRANSLATED = 0x10;
const ROOT = 0;
const FAMILIES = [4, 6] as const;

/** Changes with every change of the rules, so that an upgrade replaces them. */
const COMMENT = "only BIRD of this host, version 2";
const RULE_COUNT = 7;

export function isBgpTableIntact(rules: readonly Pick<NftRule, "comment">[]): boolean {
  return rules.length === RULE_COUNT && rules.every(({ comment }) => comment === COMMENT);
}

/** The sets: of sessions from one address, and of those from any. */
const SETS = FAMILIES.flatMap((family) => [
  { family, hasSource: true, name: `sessions${family}` },
  { family, hasSource: false, name: `peers${family}` },
]);

type EndSet = (typeof SETS)[number];

/** Replaces the table, whatever it was, in one batch. */
export function bgpTableChanges(ends: readonly BgpEnd[]): readonly NftChange[] {
  return [...tableRemoval(BGP_TABLE), ...changesOf(bgpRuleset(ends))];
}

/** What each set contains. */
export function elementsOfSets(ends: readonly BgpEnd[]): readonly { set: string; elements: readonly NftElement[] }[] {
  return SETS.map(({ family, hasSource, name }) => ({
    set: name,
    elements: ends
      .filter(({ address, source }) => address.family === family && (source !== undefined) === hasSource)
      .map(({ address, port, source }) => ({
        key: concatenate(...[source ?? [], address].flat().map(addressBytes), portValue(port)),
      })),
  }));
}

function bgpRuleset(ends: readonly BgpEnd[]): Ruleset {
  return {
    table: BGP_TABLE,
    sets: SETS.map(({ family, hasSource, name }): NftSet => {
      const address = family === 4 ? "ipv4_addr" : "ipv6_addr";
      return { name, key: hasSource ? [address, address, "inet_service"] : [address, "inet_service"] };
    }),
    chains: [
      { name: CHAIN.judged },
      {
        name: CHAIN.postrouting,
        base: { type: "filter", hook: CHAIN.postrouting, priority: PRIORITY, policy: "accept" },
      },
    ],
    rules: [
      ...SETS.map((set) => ({ chain: CHAIN.postrouting, expressions: judge(set), comment: COMMENT })),
      ...JUDGEMENTS.map((expressions) => ({ chain: CHAIN.judged, expressions, comment: COMMENT })),
    ],
    elements: elementsOfSets(ends).filter(({ elements }) => elements.length > 0),
  };
}

function judge({ family, hasSource, name }: EndSet): readonly Expression[] {
  const slots = addressBits(family) / 32;
  const first = hasSource ? slots : 0;
  return [
    ...matchFamily(family),
    ...matchProtocol(TCP),
    ...(hasSource ? [loadAddress(family, "source", 0)] : []),
    loadAddress(family, "destination", first),
    loadPort("destination", first + slots),
    { kind: "lookup", set: name, from: 0 },
    verdict({ kind: "goto", chain: CHAIN.judged }),
  ];
}

/** Packets that this host forwards have no user. */
const JUDGEMENTS: readonly (readonly Expression[])[] = [
  [
    { kind: "meta", key: "skuid", to: 0 },
    { kind: "compare", operator: "equal", from: 0, value: hostNumber(ROOT) },
    verdict({ kind: "accept" }),
  ],
  [
    { kind: "ct", key: "status", to: 0 },
    { kind: "bitwise", from: 0, to: 0, mask: hostNumber(TRANSLATED), flip: hostNumber(0) },
    { kind: "compare", operator: "equal", from: 0, value: hostNumber(TRANSLATED) },
    { kind: "counter" },
    verdict({ kind: "drop" }),
  ],
  [
    { kind: "meta", key: "skuid", to: 0 },
    { kind: "compare", operator: "different", from: 0, value: hostNumber(ROOT) },
    { kind: "counter" },
    verdict({ kind: "drop" }),
  ],
];
