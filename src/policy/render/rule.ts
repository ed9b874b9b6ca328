/**
 * One rule with everything resolved -> rules of the kernel.
 *
 * A rule about addresses is written once for each family. A positive match of a set that has networks too is written
 * twice, for its single addresses and for its networks; a short list of networks or ports once for each of them, and
 * once for all names of ports. So a rule can become several, but not more than `MOST_RULES` for each family.
 */
import type { Family } from "../../ip/address.ts";
import { mergedRanges } from "../../ip/merged-ranges.ts";
import type { DataType } from "../../linux/nftables/data-type.ts";
import type { Expression } from "../../linux/nftables/expression.ts";
import { type KeyRange, keyRange } from "../../linux/nftables/intervals.ts";
import { loadAddress, loadPort, matchFamily, matchProtocol, type Side, verdict } from "../../linux/nftables/match.ts";
import { portValue, protocolValue } from "../../linux/nftables/value.ts";
import type { EffectivePeer, EffectiveRule, IcmpMatch, PortMatch, SetReference } from "../effective-rule.ts";
import { MOST_COMBINED, MOST_COMPARED } from "../policy-size.ts";
import type { DesiredRule } from "../table/desired-table.ts";
import { type RangeList, setName } from "../table/names.ts";

export interface RuleContext {
  /** Whether the set has a twin with networks now. */
  hasPrefixes(reference: SetReference): boolean;
  /** Returns the name of the kernel set with these ranges. */
  nameOfRanges(list: RangeList): string;
  /** The chain where Pass continues. */
  readonly rest: string;
  readonly comment: string;
  /** What each line of Log in the kernel log begins with. */
  readonly logPrefix: string;
  /** How many lines of Log the kernel writes at most. */
  readonly logLimit: Expression;
  /** The set of interfaces whose sidecar decides about requests. Absent: rules with `http` match nothing. */
  readonly sidecars: string | undefined;
  /** Before an allowed packet is accepted. */
  readonly onAllow: readonly Expression[];
  /** Whether the sender of a denied packet may be told. */
  readonly mayReject: boolean;
}

type Conditions = readonly Expression[];
/** Conditions of which one must hold: one kernel rule for each. */
type Alternatives = readonly Conditions[];

const FAMILIES = [4, 6] as const;
const ALWAYS: Alternatives = [[]];

// A large table has the same few instructions in thousands of rules: each exists once.
const OF_FAMILY = { 4: matchFamily(4), 6: matchFamily(6) } as const;
const ADDRESS = {
  4: { source: loadAddress(4, "source", 0), destination: loadAddress(4, "destination", 0) },
  6: { source: loadAddress(6, "source", 0), destination: loadAddress(6, "destination", 0) },
} as const;
const PORT = { source: loadPort("source", 0), destination: loadPort("destination", 0) } as const;
const OUTGOING: Expression = { kind: "meta", key: "oifname", to: 0 };
const COUNTER: Expression = { kind: "counter" };
const ACCEPT = verdict({ kind: "accept" });
const DROP = verdict({ kind: "drop" });
/** A workload must not fill the kernel log of its host. Per rule of the kernel. */
export const LOG_LIMIT: Expression = { kind: "limit", rate: 10n, per: "second", burst: 50 };

export function renderRule(rule: EffectiveRule, context: RuleContext): readonly DesiredRule[] {
  return familiesOf(rule).flatMap((family) => {
    const usual = conditionsOf(rule, family, { ...context, mostCompared: MOST_COMPARED });
    const isTooLong = usual.reduce((count, { length }) => count * length, 1) > MOST_COMBINED;
    const conditions = isTooLong ? conditionsOf(rule, family, { ...context, mostCompared: 1 }) : usual;
    return combine(conditions).map((expressions) => {
      expressions.push(...actionOf(rule.action, context));
      const { comment } = context;
      return rule.action === "Deny" && context.mayReject
        ? { expressions, comment, isDenial: true }
        : { expressions, comment };
    });
  });
}

/** How many ranges of a list are compared one by one. */
interface ListContext extends RuleContext {
  readonly mostCompared: number;
}

/** `undefined`: one rule for both, since nothing in it depends on the family. */
function familiesOf({ family, source, destination }: EffectiveRule): readonly (Family | undefined)[] {
  if (family !== undefined) return [family];
  return [source, destination].some(hasAddresses) ? FAMILIES : [undefined];
}

function hasAddresses({ nets, notNets, members, notMembers, ports, notPorts }: EffectivePeer): boolean {
  const isNamed = (ports?.named ?? notPorts?.named) !== undefined;
  return nets !== undefined || isNamed || notNets.length + members.length + notMembers.length > 0;
}

function conditionsOf(rule: EffectiveRule, family: Family | undefined, context: ListContext): readonly Alternatives[] {
  const { protocol, notProtocol } = rule;
  return [
    family === undefined ? ALWAYS : [OF_FAMILY[family]],
    protocol === undefined ? ALWAYS : [ofProtocol(protocol)],
    notProtocol === undefined ? ALWAYS : [matchNotProtocol(notProtocol)],
    ...peerConditions(rule.source, "source", family, context),
    ...peerConditions(rule.destination, "destination", family, context),
    rule.icmp === undefined ? ALWAYS : [matchIcmp(rule.icmp)],
    rule.notIcmp === undefined ? ALWAYS : matchNotIcmp(rule.notIcmp),
    rule.http === undefined ? ALWAYS : toSidecar(context),
  ];
}

/** The sidecar behind the outgoing interface compares method and path of each request. */
function toSidecar({ sidecars }: RuleContext): Alternatives {
  return sidecars === undefined ? [] : [[OUTGOING, { kind: "lookup", set: sidecars, from: 0 }]];
}

const protocolMatches = new Map<number, Conditions>();

function ofProtocol(protocol: number): Conditions {
  const known = protocolMatches.get(protocol);
  if (known !== undefined) return known;
  const conditions = matchProtocol(protocol);
  protocolMatches.set(protocol, conditions);
  return conditions;
}

/** Every way to choose one alternative of each. */
function combine(conditions: readonly Alternatives[]): readonly Expression[][] {
  let combined: Expression[][] = [[]];
  for (const alternatives of conditions) {
    const [only, ...more] = alternatives;
    if (only === undefined) return [];
    // Most criteria have one form: no need to copy what there is so far.
    if (more.length === 0) for (const soFar of combined) soFar.push(...only);
    else combined = combined.flatMap((soFar) => alternatives.map((each) => [...soFar, ...each]));
  }
  return combined;
}

function peerConditions(
  peer: EffectivePeer,
  side: Side,
  family: Family | undefined,
  context: ListContext,
): readonly Alternatives[] {
  const withFamily = family === undefined ? [] : addressConditions(peer, side, family, context);
  return [...withFamily, ...portConditions(peer, { side, family }, context)];
}

function addressConditions(
  peer: EffectivePeer,
  side: Side,
  family: Family,
  context: ListContext,
): readonly Alternatives[] {
  const load = ADDRESS[family][side];
  const field = { load, key: ADDRESS_TYPE[family] };
  const lookup = (set: string, isInverted: boolean): Conditions => [load, { kind: "lookup", set, from: 0, isInverted }];
  return [
    peer.nets === undefined ? ALWAYS : within(field, mergedRanges(peer.nets, family).map(keyRange), context),
    outsideNetworks(field, mergedRanges(peer.notNets, family).map(keyRange), context),
    ...peer.members.map((reference) => memberAlternatives(reference, side, family, context)),
    ...peer.notMembers.map((reference) => [
      [
        ...lookup(setName(reference, family), true),
        ...(context.hasPrefixes(reference) ? lookup(setName(reference, family, "prefixes"), true) : []),
      ],
    ]),
  ];
}

function memberAlternatives(reference: SetReference, side: Side, family: Family, context: ListContext): Alternatives {
  if (reference.kind === "service" && reference.withPorts)
    return [matchAddressAndPort(setName(reference, family), side, family, false)];
  const load = ADDRESS[family][side];
  const lookup = (set: string): Conditions => [load, { kind: "lookup", set, from: 0 }];
  const single = lookup(setName(reference, family));
  return context.hasPrefixes(reference) ? [single, lookup(setName(reference, family, "prefixes"))] : [single];
}

const ADDRESS_TYPE = { 4: "ipv4_addr", 6: "ipv6_addr" } as const;

/** A field of the packet, and its type. */
interface Field {
  readonly load: Expression;
  readonly key: DataType;
}

/** Without a range nothing can match: no alternative. */
function within(field: Field, ranges: readonly KeyRange[], context: ListContext): Alternatives {
  if (ranges.length > context.mostCompared)
    return [lookUp(field, context.nameOfRanges({ key: field.key, ranges }), false)];
  return ranges.map((range) => [field.load, compareRange(range, false)]);
}

/** Nothing is outside of all addresses: no alternative. */
function outsideNetworks(field: Field, ranges: readonly KeyRange[], context: ListContext): Alternatives {
  return ranges.some(isEverything) ? [] : [outside(field, ranges, context)];
}

function outside(field: Field, ranges: readonly KeyRange[], context: ListContext): Conditions {
  if (ranges.length > context.mostCompared)
    return lookUp(field, context.nameOfRanges({ key: field.key, ranges }), true);
  return ranges.flatMap((range) => [field.load, compareRange(range, true)]);
}

function isEverything({ first, last }: KeyRange): boolean {
  return first.every((byte) => byte === 0) && last.every((byte) => byte === 0xff);
}

function lookUp({ load }: Field, set: string, isInverted: boolean): Conditions {
  return [load, { kind: "lookup", set, from: 0, isInverted }];
}

function compareRange({ first, last }: KeyRange, isInverted: boolean): Expression {
  if (Bun.deepEquals(first, last)) return compareWith(first, isInverted);
  return { kind: "range", operator: isInverted ? "outside" : "within", from: 0, first, last };
}

/** Where a port is, and the family of the addresses that have it, if the rule is about one. */
interface PortPlace {
  readonly side: Side;
  readonly family: Family | undefined;
}

function portConditions(
  { ports, notPorts }: EffectivePeer,
  place: PortPlace,
  context: ListContext,
): readonly Alternatives[] {
  return [
    ports === undefined ? ALWAYS : portAlternatives(ports, place, context),
    notPorts === undefined ? ALWAYS : [matchNoPort(notPorts, place, context)],
  ];
}

function portAlternatives(
  { ranges, named }: PortMatch,
  { side, family }: PortPlace,
  context: ListContext,
): Alternatives {
  return [
    ...within({ load: PORT[side], key: "inet_service" }, mergePorts(ranges), context),
    ...(family === undefined || named === undefined
      ? []
      : [matchAddressAndPort(setName(named, family), side, family, false)]),
  ];
}

function matchNoPort({ ranges, named }: PortMatch, { side, family }: PortPlace, context: ListContext): Conditions {
  return [
    ...outside({ load: PORT[side], key: "inet_service" }, mergePorts(ranges), context),
    ...(family === undefined || named === undefined
      ? []
      : matchAddressAndPort(setName(named, family), side, family, true)),
  ];
}

function compareWith(value: Uint8Array, isInverted: boolean): Expression {
  return { kind: "compare", operator: isInverted ? "different" : "equal", from: 0, value };
}

function mergePorts(ranges: PortMatch["ranges"]): readonly KeyRange[] {
  const merged: { first: number; last: number }[] = [];
  for (const { first, last } of ranges.toSorted((left, right) => left.first - right.first)) {
    const before = merged.at(-1);
    if (before !== undefined && first <= before.last + 1) before.last = Math.max(before.last, last);
    else merged.push({ first, last });
  }
  return merged.map(({ first, last }) => ({ first: portValue(first), last: portValue(last) }));
}

/** Address, protocol and port, looked up together. */
function matchAddressAndPort(set: string, side: Side, family: Family, isInverted: boolean): Conditions {
  const registers = family === 4 ? 1 : 4;
  return [
    ADDRESS[family][side],
    { kind: "meta", key: "l4proto", to: registers },
    loadPort(side, registers + 1),
    { kind: "lookup", set, from: 0, isInverted },
  ];
}

function matchNotProtocol(protocol: number): Conditions {
  return [{ kind: "meta", key: "l4proto", to: 0 }, compareWith(protocolValue(protocol), true)];
}

const icmpByte = (offset: number): Expression => ({ kind: "payload", base: "transport", offset, length: 1, to: 0 });

function matchIcmp({ type, code }: IcmpMatch): Conditions {
  return [
    icmpByte(0),
    compareWith(Uint8Array.of(type), false),
    ...(code === undefined ? [] : [icmpByte(1), compareWith(Uint8Array.of(code), false)]),
  ];
}

/** Another type, or the type with another code. */
function matchNotIcmp({ type, code }: IcmpMatch): Alternatives {
  const otherType = [icmpByte(0), compareWith(Uint8Array.of(type), true)];
  if (code === undefined) return [otherType];
  const otherCode = [icmpByte(1), compareWith(Uint8Array.of(code), true)];
  return [otherType, [icmpByte(0), compareWith(Uint8Array.of(type), false), ...otherCode]];
}

function actionOf(action: EffectiveRule["action"], { rest, logPrefix, logLimit, onAllow }: RuleContext): Conditions {
  switch (action) {
    case "Allow":
      return [COUNTER, ...onAllow, ACCEPT];
    case "Deny":
      return [COUNTER, DROP];
    case "Pass":
      return [COUNTER, verdict({ kind: "goto", chain: rest })];
    case "Log":
      return [COUNTER, logLimit, { kind: "log", prefix: logPrefix }];
  }
}
