/**
 * The guard table as data: the same rules for each family, for all pods. Pure.
 *
 *   prerouting (raw):  from an interface of a pod, and the route back to the source is another interface?  ──▶ foreign
 *   foreign:           this source is not allowed to this interface?                                       ──▶ drop
 *                      it is an address of a pool or a node?                                               ──▶ drop
 *
 * The route to each pod's address leads to its interface, so a pod with its own
 * addresses only changes nothing here, and its packets are not looked up in the
 * sets. Link-local addresses and `::` (neighbour discovery) have a route back.
 */
import { identity } from "../identity.ts";
import { addressBits, addressBytes, addressFromBytes, type Family } from "../ip/address.ts";
import { type AddressRange, rangeBetween } from "../ip/range.ts";
import { keyRange, rangeElements } from "../linux/nftables/intervals.ts";
import { loadAddress, matchFamily, matchInterfacePrefix, verdict } from "../linux/nftables/match.ts";
import { changesOf, type NftChange, type NftRule, type Ruleset, tableRemoval } from "../linux/nftables/ruleset.ts";
import type { NftElement, NftSet } from "../linux/nftables/set.ts";
import { concatenate, hostNumber } from "../linux/nftables/value.ts";
import type { AllowedSource, SourceChanges } from "./allowed-sources.ts";
import { allowedSet, clusterSet, GUARD_COMMENT, GUARD_TABLE } from "./guard-table.ts";

const RAW = -300;
const CHAIN = "sources";
const FOREIGN = "foreign";
const NO_ROUTE = 0;
const FAMILIES = [4, 6] as const;
const INDEX_BYTES = 4;

/** Replaces the table, whatever it was, in one batch. */
export function guardChanges(): readonly NftChange[] {
  return [...tableRemoval(GUARD_TABLE), ...changesOf(guardRuleset())];
}

export function guardRuleset(): Ruleset {
  return {
    table: GUARD_TABLE,
    sets: FAMILIES.flatMap(setsOf),
    chains: [
      { name: FOREIGN },
      { name: CHAIN, base: { type: "filter", hook: "prerouting", priority: RAW, policy: "accept" } },
    ],
    rules: FAMILIES.flatMap(rulesOf),
    elements: FAMILIES.map((family) => ({ set: clusterSet(family), elements: [everyAddress(family)] })),
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

/** Replaces the addresses of pools and nodes, in one batch. */
export function clusterChanges(family: Family, ranges: readonly AddressRange[]): readonly NftChange[] {
  const [table, set, elements] = [GUARD_TABLE, clusterSet(family), clusterElements(ranges)];
  const added: readonly NftChange[] = elements.length === 0 ? [] : [{ kind: "add-elements", table, set, elements }];
  return [{ kind: "flush-set", table, set }, ...added];
}

export function clusterElements(ranges: readonly AddressRange[]): readonly NftElement[] {
  return rangeElements(ranges.map(keyRange));
}

/** The only element of the set of a new table. */
export function everyAddress(family: Family): NftElement {
  return { key: new Uint8Array(addressBits(family) / 8), interval: "open" };
}

/** `undefined` if another program wrote something else into the set. */
export function sourceOfElement({ key, keyEnd }: NftElement): AllowedSource | undefined {
  const first = addressFromBytes(key.subarray(INDEX_BYTES));
  const last = keyEnd === undefined ? first : addressFromBytes(keyEnd.subarray(INDEX_BYTES));
  const range = first && last && rangeBetween(first, last);
  return range && { linkIndex: new DataView(key.buffer, key.byteOffset).getUint32(0, true), range };
}

function setsOf(family: Family): readonly NftSet[] {
  const address = family === 4 ? "ipv4_addr" : "ipv6_addr";
  return [
    { name: allowedSet(family), key: ["iface_index", address], holdsIntervals: true },
    { name: clusterSet(family), key: [address], holdsIntervals: true },
  ];
}

function rulesOf(family: Family): readonly NftRule[] {
  const comment = GUARD_COMMENT;
  return [
    {
      chain: CHAIN,
      expressions: [
        ...matchInterfacePrefix("iifname", identity.interfacePrefix),
        ...matchFamily(family),
        { kind: "fib", result: "oif", by: ["saddr", "iif"], to: 0 },
        { kind: "compare", operator: "equal", from: 0, value: hostNumber(NO_ROUTE) },
        verdict({ kind: "jump", chain: FOREIGN }),
      ],
      comment,
    },
    {
      chain: FOREIGN,
      expressions: [
        ...matchFamily(family),
        { kind: "meta", key: "iif", to: 0 },
        loadAddress(family, "source", 1),
        { kind: "lookup", set: allowedSet(family), from: 0, isInverted: true },
        verdict({ kind: "drop" }),
      ],
      comment,
    },
    {
      chain: FOREIGN,
      expressions: [
        ...matchFamily(family),
        loadAddress(family, "source", 0),
        { kind: "lookup", set: clusterSet(family), from: 0 },
        verdict({ kind: "drop" }),
      ],
      comment,
    },
  ];
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
