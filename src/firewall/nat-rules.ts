/**
 * The NAT table as data. Pure.
 *
 *   postrouting:  source in `masquerade`, and destination not in `pools`?  ──▶ masquerade
 *
 * Two lookups for the first packet of a connection, however many pods there are; a pod changes nothing here.
 */
import type { Family } from "../ip/address.ts";
import { mergedRanges } from "../ip/merged-ranges.ts";
import { type KeyRange, keyRange, rangeElements } from "../linux/nftables/intervals.ts";
import { loadAddress, matchFamily } from "../linux/nftables/match.ts";
import { changesOf, type NftChange, type NftRule, type Ruleset, tableRemoval } from "../linux/nftables/ruleset.ts";
import type { NftSet } from "../linux/nftables/set.ts";
import { NAT_TABLE, type NatPool } from "./nat-table.ts";

const FAMILIES = [4, 6] as const;
const POSTROUTING = "postrouting";
const SOURCE_NAT = 100;

/** Replaces the table, whatever it was, in one batch; without a comment it is only removed. */
export function natChanges(pools: readonly NatPool[], comment: string | undefined): readonly NftChange[] {
  const removal = tableRemoval(NAT_TABLE);
  return comment === undefined ? removal : [...removal, ...changesOf(natRuleset(pools, comment))];
}

export function natRuleset(pools: readonly NatPool[], comment: string): Ruleset {
  const masqueraded = pools.filter(({ natOutgoing }) => natOutgoing);
  return {
    table: NAT_TABLE,
    sets: FAMILIES.flatMap((family) => [setOf(family, "masquerade"), setOf(family, "pools")]),
    chains: [{ name: POSTROUTING, base: { type: "nat", hook: "postrouting", priority: SOURCE_NAT, policy: "accept" } }],
    rules: FAMILIES.map((family) => ruleOf(family, comment)),
    elements: FAMILIES.flatMap((family) => [
      { set: setName(family, "masquerade"), elements: rangeElements(rangesOf(masqueraded, family)) },
      { set: setName(family, "pools"), elements: rangeElements(rangesOf(pools, family)) },
    ]).filter(({ elements }) => elements.length > 0),
  };
}

type SetPurpose = "masquerade" | "pools";

function setName(family: Family, purpose: SetPurpose): string {
  return `${purpose}${family}`;
}

function setOf(family: Family, purpose: SetPurpose): NftSet {
  const key = [family === 4 ? "ipv4_addr" : "ipv6_addr"] as const;
  return { name: setName(family, purpose), key, holdsIntervals: true };
}

function ruleOf(family: Family, comment: string): NftRule {
  return {
    chain: POSTROUTING,
    expressions: [
      ...matchFamily(family),
      loadAddress(family, "source", 0),
      { kind: "lookup", set: setName(family, "masquerade"), from: 0 },
      loadAddress(family, "destination", 0),
      { kind: "lookup", set: setName(family, "pools"), from: 0, isInverted: true },
      { kind: "masquerade" },
    ],
    comment,
  };
}

function rangesOf(pools: readonly NatPool[], family: Family): readonly KeyRange[] {
  const cidrs = pools.map(({ cidr }) => cidr);
  return mergedRanges(cidrs, family).map(keyRange);
}
