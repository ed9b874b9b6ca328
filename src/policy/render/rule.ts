/**
 * One rule with everything resolved -> rules of the kernel.
 *
 * A rule about addresses is written once for each family. A positive match of a set that has networks too is written
 * twice, for its single addresses and for its networks; a list of ports with names once for the numbers and once for
 * each name. So a rule can become several, which match different packets.
 */
import { addressBytes, type Family } from "../../ip/address.ts";
import { lastAddress, type Prefix } from "../../ip/prefix.ts";
import type { Expression } from "../../linux/nftables/expression.ts";
import { rangeElements } from "../../linux/nftables/intervals.ts";
import { loadAddress, loadPort, matchFamily, matchProtocol, type Side, verdict } from "../../linux/nftables/match.ts";
import { portValue, protocolValue } from "../../linux/nftables/value.ts";
import type { EffectivePeer, EffectiveRule, IcmpMatch, PortMatch, SetReference } from "../effective-rule.ts";
import type { DesiredRule } from "../table/desired-table.ts";
import { setName } from "../table/names.ts";
import { mergedRanges } from "./merged-ranges.ts";

export interface RuleContext {
  /** Whether the set has a twin with networks now. */
  hasPrefixes(reference: SetReference): boolean;
  /** The chain where Pass continues. */
  readonly rest: string;
  readonly comment: string;
  /** The prefix of what Log writes. */
  readonly logPrefix: string;
  /** Before an allowed packet is accepted. */
  readonly onAllow: readonly Expression[];
}

type Conditions = readonly Expression[];
/** Conditions of which one must hold: one kernel rule for each. */
type Alternatives = readonly Conditions[];

const FAMILIES = [4, 6] as const;
const ALWAYS: Alternatives = [[]];

export function renderRule(rule: EffectiveRule, context: RuleContext): readonly DesiredRule[] {
  return familiesOf(rule).flatMap((family) => {
    const conditions = conditionsOf(rule, family, context);
    return combine(conditions).map((expressions) => ({
      expressions: [...expressions, ...actionOf(rule.action, context)],
      comment: context.comment,
    }));
  });
}

/** `undefined`: one rule for both, since nothing in it depends on the family. */
function familiesOf({ family, source, destination }: EffectiveRule): readonly (Family | undefined)[] {
  if (family !== undefined) return [family];
  return [source, destination].some(hasAddresses) ? FAMILIES : [undefined];
}

function hasAddresses({ nets, notNets, members, notMembers, ports, notPorts }: EffectivePeer): boolean {
  const named = [...(ports?.named ?? []), ...(notPorts?.named ?? [])];
  return nets !== undefined || notNets.length + members.length + notMembers.length + named.length > 0;
}

function conditionsOf(rule: EffectiveRule, family: Family | undefined, context: RuleContext): readonly Alternatives[] {
  const { protocol, notProtocol } = rule;
  return [
    family === undefined ? ALWAYS : [matchFamily(family)],
    protocol === undefined ? ALWAYS : [matchProtocol(protocol)],
    notProtocol === undefined ? ALWAYS : [matchNotProtocol(notProtocol)],
    ...peerConditions(rule.source, "source", family, context),
    ...peerConditions(rule.destination, "destination", family, context),
    rule.icmp === undefined ? ALWAYS : [matchIcmp(rule.icmp)],
    rule.notIcmp === undefined ? ALWAYS : matchNotIcmp(rule.notIcmp),
  ];
}

/** Every way to choose one alternative of each. */
function combine(conditions: readonly Alternatives[]): Alternatives {
  return conditions.reduce<Alternatives>(
    (soFar, alternatives) => soFar.flatMap((before) => alternatives.map((each) => [...before, ...each])),
    ALWAYS,
  );
}

function peerConditions(
  peer: EffectivePeer,
  side: Side,
  family: Family | undefined,
  context: RuleContext,
): readonly Alternatives[] {
  const withFamily = family === undefined ? [] : addressConditions(peer, side, family, context);
  return [...withFamily, ...portConditions(peer, side, family)];
}

function addressConditions(
  peer: EffectivePeer,
  side: Side,
  family: Family,
  context: RuleContext,
): readonly Alternatives[] {
  const load = loadAddress(family, side, 0);
  const lookup = (set: string, isInverted: boolean): Conditions => [load, { kind: "lookup", set, from: 0, isInverted }];
  return [
    peer.nets === undefined ? ALWAYS : networkAlternatives(peer.nets, side, family),
    ...(peer.notNets.some(({ network }) => network.family === family)
      ? [[matchNetworks(peer.notNets, side, family, true)]]
      : []),
    ...peer.members.map((reference) => memberAlternatives(reference, side, family, context)),
    ...peer.notMembers.map((reference) => [
      [
        ...lookup(setName(reference, family), true),
        ...(context.hasPrefixes(reference) ? lookup(setName(reference, family, "prefixes"), true) : []),
      ],
    ]),
  ];
}

function memberAlternatives(reference: SetReference, side: Side, family: Family, context: RuleContext): Alternatives {
  if (reference.kind === "service" && reference.withPorts)
    return [matchAddressAndPort(setName(reference, family), side, family, false)];
  const load = loadAddress(family, side, 0);
  const lookup = (set: string): Conditions => [load, { kind: "lookup", set, from: 0 }];
  const single = lookup(setName(reference, family));
  return context.hasPrefixes(reference) ? [single, lookup(setName(reference, family, "prefixes"))] : [single];
}

/** Without a network of this family nothing can match: no alternative. */
function networkAlternatives(nets: readonly Prefix[], side: Side, family: Family): Alternatives {
  if (!nets.some(({ network }) => network.family === family)) return [];
  return [matchNetworks(nets, side, family, false)];
}

function matchNetworks(nets: readonly Prefix[], side: Side, family: Family, isInverted: boolean): Conditions {
  const own = nets.filter(({ network }) => network.family === family);
  const [only, ...more] = own;
  const load = loadAddress(family, side, 0);
  if (only !== undefined && more.length === 0 && only.length > 0) {
    const operator = isInverted ? "outside" : "within";
    return [
      load,
      { kind: "range", operator, from: 0, first: addressBytes(only.network), last: addressBytes(lastAddress(only)) },
    ];
  }
  const elements = rangeElements(mergedRanges(own, family));
  const key = [family === 4 ? "ipv4_addr" : "ipv6_addr"] as const;
  return [load, { kind: "lookup", set: { key, holdsIntervals: true, elements }, from: 0, isInverted }];
}

function portConditions(
  { ports, notPorts }: EffectivePeer,
  side: Side,
  family: Family | undefined,
): readonly Alternatives[] {
  return [
    ports === undefined ? ALWAYS : portAlternatives(ports, side, family),
    notPorts === undefined ? ALWAYS : [matchNoPort(notPorts, side, family)],
  ];
}

function portAlternatives({ ranges, named }: PortMatch, side: Side, family: Family | undefined): Alternatives {
  return [
    ...(ranges.length === 0 ? [] : [matchRanges(ranges, side, false)]),
    ...(family === undefined
      ? []
      : named.map((each) => matchAddressAndPort(setName(each, family), side, family, false))),
  ];
}

function matchNoPort({ ranges, named }: PortMatch, side: Side, family: Family | undefined): Conditions {
  return [
    ...(ranges.length === 0 ? [] : matchRanges(ranges, side, true)),
    ...(family === undefined
      ? []
      : named.flatMap((each) => matchAddressAndPort(setName(each, family), side, family, true))),
  ];
}

function matchRanges(ranges: PortMatch["ranges"], side: Side, isInverted: boolean): Conditions {
  const merged = mergePorts(ranges);
  const [only, ...more] = merged;
  const load = loadPort(side, 0);
  if (only !== undefined && more.length === 0) {
    const operator = isInverted ? "outside" : "within";
    return [load, { kind: "range", operator, from: 0, first: portValue(only.first), last: portValue(only.last) }];
  }
  const elements = rangeElements(merged.map(({ first, last }) => ({ first: portValue(first), last: portValue(last) })));
  return [
    load,
    { kind: "lookup", set: { key: ["inet_service"], holdsIntervals: true, elements }, from: 0, isInverted },
  ];
}

function mergePorts(ranges: PortMatch["ranges"]): PortMatch["ranges"] {
  const merged: { first: number; last: number }[] = [];
  for (const { first, last } of ranges.toSorted((left, right) => left.first - right.first)) {
    const before = merged.at(-1);
    if (before !== undefined && first <= before.last + 1) before.last = Math.max(before.last, last);
    else merged.push({ first, last });
  }
  return merged;
}

/** Address, protocol and port, looked up together. */
function matchAddressAndPort(set: string, side: Side, family: Family, isInverted: boolean): Conditions {
  const registers = family === 4 ? 1 : 4;
  return [
    loadAddress(family, side, 0),
    { kind: "meta", key: "l4proto", to: registers },
    loadPort(side, registers + 1),
    { kind: "lookup", set, from: 0, isInverted },
  ];
}

function matchNotProtocol(protocol: number): Conditions {
  return [
    { kind: "meta", key: "l4proto", to: 0 },
    { kind: "compare", operator: "different", from: 0, value: protocolValue(protocol) },
  ];
}

const icmpByte = (offset: number): Expression => ({ kind: "payload", base: "transport", offset, length: 1, to: 0 });

function matchIcmp({ type, code }: IcmpMatch): Conditions {
  const equal = (value: number): Expression => ({
    kind: "compare",
    operator: "equal",
    from: 0,
    value: Uint8Array.of(value),
  });
  return [icmpByte(0), equal(type), ...(code === undefined ? [] : [icmpByte(1), equal(code)])];
}

/** Another type, or the type with another code. */
function matchNotIcmp({ type, code }: IcmpMatch): Alternatives {
  const compare = (operator: "equal" | "different", value: number): Expression => ({
    kind: "compare",
    operator,
    from: 0,
    value: Uint8Array.of(value),
  });
  const otherType = [icmpByte(0), compare("different", type)];
  if (code === undefined) return [otherType];
  return [otherType, [icmpByte(0), compare("equal", type), icmpByte(1), compare("different", code)]];
}

function actionOf(action: EffectiveRule["action"], { rest, logPrefix, onAllow }: RuleContext): Conditions {
  switch (action) {
    case "Allow":
      return [{ kind: "counter" }, ...onAllow, verdict({ kind: "accept" })];
    case "Deny":
      return [{ kind: "counter" }, verdict({ kind: "drop" })];
    case "Pass":
      return [{ kind: "counter" }, verdict({ kind: "goto", chain: rest })];
    case "Log":
      return [{ kind: "log", prefix: logPrefix }];
  }
}
