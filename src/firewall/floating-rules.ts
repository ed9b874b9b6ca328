/**
 * The table of floating IPs as data. Pure.
 *
 *   packet ─▶ prerouting ┐ destination in `external`? ──▶ DNAT to the pod's address
 *   host   ─▶ output     ┘
 *   packet ─▶ postrouting: led there by DNAT, and source and destination are the same pod? ──▶ SNAT to its floating IP
 *
 * Without the last rule a pod that reaches itself would answer from its own address to its own address, and ignore the reply.
 * One lookup for the first packet of a connection, however many floating IPs there are; a pod changes elements only. Policy is
 * evaluated after DNAT: it sees the pod's own address.
 */
import { addressBits, addressBytes, addressFromBytes, type Family } from "../ip/address.ts";
import type { Expression } from "../linux/nftables/expression.ts";
import { loadAddress, matchFamily } from "../linux/nftables/match.ts";
import {
  changesOf,
  type Hook,
  type NftChange,
  type NftRule,
  type Ruleset,
  tableRemoval,
} from "../linux/nftables/ruleset.ts";
import type { NftElement, NftSet } from "../linux/nftables/set.ts";
import { concatenate, hostNumber } from "../linux/nftables/value.ts";
import { type FloatingAddress, type FloatingChanges, hairpinSources } from "./floating-addresses.ts";
import { FLOATING_COMMENT, FLOATING_TABLE, type FloatingMapPurpose, floatingMap } from "./floating-table.ts";

const FAMILIES = [4, 6] as const;
const PURPOSES: readonly FloatingMapPurpose[] = ["external", "hairpin"];
/** After the orchestrator's Service rules (-100). */
const AFTER_SERVICES = -99;
/** Before anything masquerades (100): only the first translation of a source counts. */
const BEFORE_MASQUERADE = 99;
const DNATED = 0x20;

/** Replaces the table, whatever it was, in one batch. */
export function floatingTableChanges(addresses: readonly FloatingAddress[]): readonly NftChange[] {
  return [...tableRemoval(FLOATING_TABLE), ...changesOf(floatingRuleset(addresses))];
}

export function floatingRuleset(addresses: readonly FloatingAddress[]): Ruleset {
  return {
    table: FLOATING_TABLE,
    sets: FAMILIES.flatMap((family) => PURPOSES.map((purpose) => mapOf(purpose, family))),
    chains: [
      chainOf("prerouting", AFTER_SERVICES),
      chainOf("output", AFTER_SERVICES),
      chainOf("postrouting", BEFORE_MASQUERADE),
    ],
    rules: FAMILIES.flatMap((family) => [
      ruleOf("prerouting", leadToPod(family)),
      ruleOf("output", leadToPod(family)),
      ruleOf("postrouting", hideFromItself(family)),
    ]),
    elements: [...elementsOf("external", addresses), ...elementsOf("hairpin", hairpinSources(addresses))],
  };
}

/** Elements to remove and to add, in one batch. */
export function floatingElementChanges(
  purpose: FloatingMapPurpose,
  { removed, added }: FloatingChanges,
): readonly NftChange[] {
  const table = FLOATING_TABLE;
  return [
    ...elementsOf(purpose, removed).map((list): NftChange => ({ kind: "delete-elements", table, ...list })),
    ...elementsOf(purpose, added).map((list): NftChange => ({ kind: "add-elements", table, ...list })),
  ];
}

/** `undefined` if another program wrote something else into the map. */
export function floatingOfElement(purpose: FloatingMapPurpose, { key, data }: NftElement): FloatingAddress | undefined {
  if (!(data instanceof Uint8Array)) return undefined;
  const first = addressFromBytes(purpose === "external" ? key : key.subarray(0, key.length / 2));
  const second = addressFromBytes(data);
  if (first === undefined || second === undefined) return undefined;
  return purpose === "external" ? { external: first, internal: second } : { external: second, internal: first };
}

function elementsOf(
  purpose: FloatingMapPurpose,
  addresses: readonly FloatingAddress[],
): readonly { readonly set: string; readonly elements: readonly NftElement[] }[] {
  return FAMILIES.map((family) => ({
    set: floatingMap(purpose, family),
    elements: addresses.filter(({ external }) => external.family === family).map((each) => elementOf(purpose, each)),
  })).filter(({ elements }) => elements.length > 0);
}

function elementOf(purpose: FloatingMapPurpose, { external, internal }: FloatingAddress): NftElement {
  const [outside, inside] = [addressBytes(external), addressBytes(internal)];
  if (purpose === "external") return { key: outside, data: inside };
  return { key: concatenate(inside, inside), data: outside };
}

function mapOf(purpose: FloatingMapPurpose, family: Family): NftSet {
  const address = family === 4 ? "ipv4_addr" : "ipv6_addr";
  const key = purpose === "external" ? ([address] as const) : ([address, address] as const);
  return { name: floatingMap(purpose, family), key, data: [address] };
}

function chainOf(hook: Hook, priority: number): Ruleset["chains"][number] {
  return { name: hook, base: { type: "nat", hook, priority, policy: "accept" } };
}

function ruleOf(chain: Hook, expressions: readonly Expression[]): NftRule {
  return { chain, expressions, comment: FLOATING_COMMENT };
}

function leadToPod(family: Family): readonly Expression[] {
  return [
    ...matchFamily(family),
    loadAddress(family, "destination", 0),
    { kind: "lookup", set: floatingMap("external", family), from: 0, to: 0 },
    { kind: "nat", type: "dnat", family: family === 4 ? "ip" : "ip6", address: 0 },
  ];
}

function hideFromItself(family: Family): readonly Expression[] {
  return [
    ...matchFamily(family),
    { kind: "ct", key: "status", to: 0 },
    { kind: "bitwise", from: 0, to: 0, mask: hostNumber(DNATED), flip: hostNumber(0) },
    { kind: "compare", operator: "equal", from: 0, value: hostNumber(DNATED) },
    loadAddress(family, "source", 0),
    loadAddress(family, "destination", addressBits(family) / 32),
    { kind: "lookup", set: floatingMap("hairpin", family), from: 0, to: 0 },
    { kind: "nat", type: "snat", family: family === 4 ? "ip" : "ip6", address: 0 },
  ];
}
