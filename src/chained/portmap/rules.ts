/**
 * The table of one family without its elements. Pure.
 *
 *   packet ─▶ prerouting ┐ to an address of this host?
 *   host   ─▶ output     ┘   └▶ to-pods: (protocol, address, port), then (protocol, any, port) in `ports` ─▶ DNAT
 *   packet ─▶ postrouting: led somewhere by DNAT, and (source, pod) in `sources`? ─▶ masquerade
 *   host   ─▶ output: to 127/8, and the port in `host-loopback`? ─▶ stays on the host
 *   packet ─▶ guard: from outside to 127/8? ─▶ drop
 *
 * Priority -99 lets the orchestrator's Service rules (-100) decide first.
 */

import { type Address, addressBits, addressBytes, type Family } from "../../ip/address.ts";
import type { Expression } from "../../linux/nftables/expression.ts";
import { loadAddress, loadPort, matchInterface, matchPrefix, verdict } from "../../linux/nftables/match.ts";
import type { BaseChain, NftChain, NftChange, NftRule } from "../../linux/nftables/ruleset.ts";
import type { NftSet } from "../../linux/nftables/set.ts";
import { hostNumber } from "../../linux/nftables/value.ts";
import { CHAIN, LOOPBACK, neighbourComment, SET, tableOf } from "./table.ts";

const AFTER_SERVICES = -99;
const RAW = -300;
const SOURCE_NAT = 100;
const LOCAL_ADDRESS = 2;
const DNATED = 0x20;

const LOOPBACK_SETS: readonly NftSet[] = [
  { name: SET.hostLoopback, key: ["inet_proto", "ipv4_addr", "inet_service"] },
  { name: SET.loopbackLinks, key: ["ifname", "ipv4_addr"] },
];

function setsOf(family: Family): readonly NftSet[] {
  const address = family === 4 ? "ipv4_addr" : "ipv6_addr";
  const port = ["inet_proto", address, "inet_service"] as const;
  return [
    { name: SET.ports, key: port, data: [address, "inet_service"] },
    { name: SET.owners, key: port, data: ["ipv6_addr"] },
    { name: SET.attachments, key: ["ipv6_addr", "mark"], data: [...port, address, "inet_service"] },
    { name: SET.sources, key: [address, address] },
    { name: SET.counted, key: port, data: "verdict" },
    ...(family === 4 ? LOOPBACK_SETS : []),
  ];
}

export function chainsOf(family: Family): readonly NftChain[] {
  const chains: NftChain[] = [
    { name: CHAIN.toPods },
    { name: CHAIN.neighbours },
    { name: CHAIN.prerouting, base: entry("nat", "prerouting", AFTER_SERVICES) },
    { name: CHAIN.output, base: entry("nat", "output", AFTER_SERVICES) },
    { name: CHAIN.postrouting, base: entry("nat", "postrouting", SOURCE_NAT) },
  ];
  if (family === 4) chains.push({ name: CHAIN.guard, base: entry("filter", "prerouting", RAW) });
  return chains;
}

/** In the order of their chains, as the kernel lists them. */
export function rulesOf(family: Family): readonly NftRule[] {
  const rules: NftRule[] = [
    { chain: CHAIN.toPods, expressions: leadToPod(family, "this address") },
    { chain: CHAIN.toPods, expressions: leadToPod(family, "any address") },
    { chain: CHAIN.prerouting, expressions: toLocalAddress() },
    ...outputRules(family),
    { chain: CHAIN.postrouting, expressions: returnUnlessLed() },
    { chain: CHAIN.postrouting, expressions: hideSource(family, addressBits(family)) },
    { chain: CHAIN.postrouting, expressions: hideSource(family, 0) },
  ];
  if (family === 4) rules.push({ chain: CHAIN.postrouting, expressions: hideSource(4, LOOPBACK.length) });
  rules.push({ chain: CHAIN.postrouting, expressions: [verdict({ kind: "jump", chain: CHAIN.neighbours })] });
  if (family === 4) rules.push(...guardRules());
  return rules;
}

/** Made when the first pod on a bridge with such a prefix comes. */
export function neighbourRule(family: Family, length: number): NftRule {
  return { chain: CHAIN.neighbours, expressions: hideSource(family, length), comment: neighbourComment(length) };
}

export function isNeighbourRule({ chain }: NftRule): boolean {
  return chain === CHAIN.neighbours;
}

/**
 * Makes the table, or repairs it: rules are replaced whatever they were, so that
 * two who do it at once leave the same. Elements stay.
 */
export function baseChanges(family: Family, neighbourLengths: readonly number[]): NftChange[] {
  const table = tableOf(family);
  const changes: NftChange[] = [{ kind: "add-table", table }];
  for (const chain of chainsOf(family)) {
    changes.push({ kind: "add-chain", table, chain }, { kind: "flush-chain", table, chain: chain.name });
  }
  for (const set of setsOf(family)) changes.push({ kind: "add-set", table, set });
  for (const rule of rulesOf(family)) changes.push({ kind: "add-rule", table, rule });
  for (const length of neighbourLengths) {
    changes.push({ kind: "add-rule", table, rule: neighbourRule(family, length) });
  }
  return changes;
}

function entry(type: BaseChain["type"], hook: BaseChain["hook"], priority: number): BaseChain {
  return { type, hook, priority, policy: "accept" };
}

type HostPart = "this address" | "any address";

function leadToPod(family: Family, host: HostPart): Expression[] {
  const port = addressBits(family) / 32;
  return [
    ...loadPortKey(family, host),
    { kind: "lookup", set: SET.ports, from: 0, to: 0 },
    { kind: "nat", type: "dnat", family: family === 4 ? "ip" : "ip6", address: 0, port },
  ];
}

/** Protocol, destination and port from register 0 on: a key of `ports`. */
function loadPortKey(family: Family, host: HostPart): Expression[] {
  const words = addressBits(family) / 32;
  return [
    { kind: "meta", key: "l4proto", to: 0 },
    loadAddress(family, "destination", 1),
    ...(host === "any address" ? [mask(1, { family, value: 0n })] : []),
    loadPort("destination", 1 + words),
  ];
}

function toLocalAddress(): Expression[] {
  return [
    { kind: "fib", result: "type", by: ["daddr"], to: 0 },
    { kind: "compare", operator: "equal", from: 0, value: hostNumber(LOCAL_ADDRESS) },
    verdict({ kind: "jump", chain: CHAIN.toPods }),
  ];
}

function outputRules(family: Family): readonly NftRule[] {
  const chain = CHAIN.output;
  if (family === 6) return [{ chain, expressions: toLocalAddressButLoopback() }];
  return [
    { chain, expressions: leaveToHost("this address") },
    { chain, expressions: leaveToHost("any address") },
    { chain, expressions: toLocalAddress() },
  ];
}

/** Returns from the chain if the port's loopback belongs to a process on the host. */
function leaveToHost(host: HostPart): Expression[] {
  return [
    ...matchPrefix("destination", LOOPBACK),
    ...loadPortKey(4, host),
    { kind: "lookup", set: SET.hostLoopback, from: 0 },
    verdict({ kind: "return" }),
  ];
}

/** No answer from outside would reach `::1`, whatever its source: better refused at once than silent. */
function toLocalAddressButLoopback(): Expression[] {
  const loopback = addressBytes({ family: 6, value: 1n });
  return [
    loadAddress(6, "destination", 0),
    { kind: "compare", operator: "different", from: 0, value: loopback },
    ...toLocalAddress(),
  ];
}

function returnUnlessLed(): Expression[] {
  return [
    { kind: "ct", key: "status", to: 0 },
    { kind: "bitwise", from: 0, to: 0, mask: hostNumber(DNATED), flip: hostNumber(0) },
    { kind: "compare", operator: "different", from: 0, value: hostNumber(DNATED) },
    verdict({ kind: "return" }),
  ];
}

/** Masquerades what comes from a source of which so many bits are in `sources` with the pod. */
function hideSource(family: Family, length: number): Expression[] {
  const bits = addressBits(family);
  const expressions: Expression[] = [loadAddress(family, "source", 0)];
  if (length < bits) {
    const ones = { family, value: ((1n << BigInt(length)) - 1n) << BigInt(bits - length) };
    expressions.push(mask(0, ones));
  }
  expressions.push(
    loadAddress(family, "destination", bits / 32),
    { kind: "lookup", set: SET.sources, from: 0 },
    { kind: "masquerade" },
  );
  return expressions;
}

/** Nobody outside may talk to 127.0.0.0/8, or as if from there. */
function guardRules(): readonly NftRule[] {
  return (["destination", "source"] as const).map((side) => ({
    chain: CHAIN.guard,
    expressions: [
      ...matchInterface("iifname", "different", "lo"),
      ...matchPrefix(side, LOOPBACK),
      verdict({ kind: "drop" }),
    ],
  }));
}

function mask(register: number, bits: Address): Expression {
  const bytes = addressBytes(bits);
  return { kind: "bitwise", from: register, to: register, mask: bytes, flip: new Uint8Array(bytes.length) };
}
