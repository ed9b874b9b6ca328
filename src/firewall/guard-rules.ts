/**
 * The guard table as data: one rule for each family, for all pods. Pure.
 *
 *   prerouting (raw):  from an interface of a pod, and the route back to the source is another interface,
 *                      and this source is not allowed to this interface?  ──▶ drop
 *
 * The route to each pod's address leads to its interface, so a pod with its own
 * addresses only changes nothing here, and its packets are not looked up in the
 * set. Link-local addresses and `::` (neighbour discovery) have a route back.
 */
import { identity } from "../identity.ts";
import { addressBytes, addressFromBytes, type Family } from "../ip/address.ts";
import { rangeBetween } from "../ip/range.ts";
import { loadAddress, matchFamily, matchInterfacePrefix, verdict } from "../linux/nftables/match.ts";
import { changesOf, type NftChange, type NftRule, type Ruleset } from "../linux/nftables/ruleset.ts";
import type { NftElement, NftSet } from "../linux/nftables/set.ts";
import { concatenate, hostNumber } from "../linux/nftables/value.ts";
import type { AllowedSource, SourceChanges } from "./allowed-sources.ts";
import { allowedSet, GUARD_COMMENT, GUARD_TABLE } from "./guard-table.ts";

const RAW = -300;
const CHAIN = "sources";
const NO_ROUTE = 0;
const FAMILIES = [4, 6] as const;
const INDEX_BYTES = 4;

/** Replaces the table, whatever it was, in one batch. */
export function guardChanges(): readonly NftChange[] {
  const table = GUARD_TABLE;
  return [{ kind: "add-table", table }, { kind: "delete-table", table }, ...changesOf(guardRuleset())];
}

export function guardRuleset(): Ruleset {
  return {
    table: GUARD_TABLE,
    sets: FAMILIES.map(setOf),
    chains: [{ name: CHAIN, base: { type: "filter", hook: "prerouting", priority: RAW, policy: "accept" } }],
    rules: FAMILIES.map(ruleOf),
    elements: [],
  };
}

/** Elements to remove and to add, in one batch. */
export function allowedChanges({ removed, added }: SourceChanges): readonly NftChange[] {
  const table = GUARD_TABLE;
  return [
    ...byFamily(removed).map((list): NftChange => ({ kind: "delete-elements", table, ...list })),
    ...byFamily(added).map((list): NftChange => ({ kind: "add-elements", table, ...list })),
  ];
}

/** `undefined` if another program wrote something else into the set. */
export function sourceOfElement({ key, keyEnd }: NftElement): AllowedSource | undefined {
  const first = addressFromBytes(key.subarray(INDEX_BYTES));
  const last = keyEnd === undefined ? first : addressFromBytes(keyEnd.subarray(INDEX_BYTES));
  const range = first && last && rangeBetween(first, last);
  return range && { linkIndex: new DataView(key.buffer, key.byteOffset).getUint32(0, true), range };
}

function setOf(family: Family): NftSet {
  const address = family === 4 ? "ipv4_addr" : "ipv6_addr";
  return { name: allowedSet(family), key: ["iface_index", address], holdsIntervals: true };
}

function ruleOf(family: Family): NftRule {
  return {
    chain: CHAIN,
    expressions: [
      ...matchInterfacePrefix("iifname", identity.interfacePrefix),
      ...matchFamily(family),
      { kind: "fib", result: "oif", by: ["saddr", "iif"], to: 0 },
      { kind: "compare", operator: "equal", from: 0, value: hostNumber(NO_ROUTE) },
      { kind: "meta", key: "iif", to: 0 },
      loadAddress(family, "source", 1),
      { kind: "lookup", set: allowedSet(family), from: 0, isInverted: true },
      verdict({ kind: "drop" }),
    ],
    comment: GUARD_COMMENT,
  };
}

function byFamily(
  sources: readonly AllowedSource[],
): readonly { readonly set: string; readonly elements: readonly NftElement[] }[] {
  return FAMILIES.map((family) => ({
    set: allowedSet(family),
    elements: sources.filter(({ range }) => range.first.family === family).map(elementOf),
  })).filter(({ elements }) => elements.length > 0);
}

/** `nft` prints the index in the wrong byte order, so the name is a comment. */
function elementOf({ linkIndex, linkName, range }: AllowedSource): NftElement {
  const index = hostNumber(linkIndex);
  return {
    key: concatenate(index, addressBytes(range.first)),
    keyEnd: concatenate(index, addressBytes(range.last)),
    ...(linkName === undefined ? {} : { comment: linkName }),
  };
}
