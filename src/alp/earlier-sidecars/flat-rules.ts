/**
 * What a pod's policies say about requests, as one list of rules that allow or deny: a sidecar of a release before v3.29 knows
 * one tier only. A rule that passes becomes the rules of what comes after it, each with the criteria of both; what matches
 * none of them is denied. Pure.
 *
 * Those sidecars ignore some criteria, so that a rule would match too much: negated networks and ports, and the family. Here
 * they are expressed by criteria that they know.
 *
 * Lists of networks are never combined, only repeated: the combination of two rules has both lists, as sets. What all of this
 * costs is limited, because it is done in the thread of the agent.
 */
import type { HttpMatch } from "../../http/http-match.ts";
import { mergedRanges } from "../../ip/merged-ranges.ts";
import { type Prefix, parsePrefix } from "../../ip/prefix.ts";
import type { AddressRange } from "../../ip/range.ts";
import type {
  SidecarEvaluation,
  SidecarPeer,
  SidecarPolicy,
  SidecarPorts,
  SidecarRule,
} from "../protocol/sidecar-state.ts";

/** The first rule that matches decides; a request that none matches is denied. */
export interface FlatRule {
  readonly action: "allow" | "deny";
  readonly source: FlatPeer;
  readonly destination: FlatPeer;
  readonly http?: HttpMatch;
}

/** The same object wherever it is repeated. */
export type NetList = readonly string[];

/** All criteria must match. */
export interface FlatPeer {
  /** In one of them; absent: everywhere. */
  readonly nets?: NetList;
  /** In one of each of these lists. */
  readonly netLists: readonly NetList[];
  /** In none of these lists. */
  readonly notNets: readonly NetList[];
  readonly sets: readonly string[];
  readonly notSets: readonly string[];
  /** In one of them; absent: every port. */
  readonly ports?: readonly Range[];
  /** Of each of these sets, if the request has an identity. */
  readonly identities: readonly string[];
}

type Range = readonly [first: number, last: number];
type Criteria = Pick<FlatRule, "source" | "destination" | "http">;

const ANYTHING: FlatPeer = { netLists: [], notNets: [], sets: [], notSets: [], identities: [] };
const NOTHING_ALLOWED: FlatRule = { action: "deny", source: ANYTHING, destination: ANYTHING };
export const DENY_EVERYTHING: readonly (readonly FlatRule[])[] = [[NOTHING_ALLOWED]];
const LAST_PORT = 65_535;
/** A sidecar compares a request with all of them. */
const MOST_RULES = 10_000;
/** Networks and ranges of ports in all rules; of a list that is sent as a set, its addresses, once. */
const MOST_CRITERIA = 250_000;
/** Pairs of rules that are tried, and pairs of ranges of ports. */
const MOST_PAIRS = 500_000;
/** Beyond that, rules that nothing can match are no longer left out. */
const MOST_COMPARED_NETS = 1_000_000;

/** One list for each policy, and one for the profiles, in order. `undefined` if there are too many. */
export function flatRules(
  { tiers, profiles }: SidecarEvaluation,
  policies: ReadonlyMap<string, SidecarPolicy>,
): readonly (readonly FlatRule[])[] | undefined {
  const ranges = new NetRanges();
  let later: readonly (readonly FlatRule[])[] | undefined = flattenAll([profiles], [], new Limits(ranges));
  for (const { defaultAction, policies: keys } of tiers.toReversed()) {
    if (later === undefined) return undefined;
    const limits = new Limits(ranges);
    const isPassed = defaultAction === "Pass";
    if (isPassed && !later.flat().every((rule) => limits.take(rule))) return undefined;
    const own = flattenAll(
      keys.map((key) => policies.get(key)?.rules),
      later.flat(),
      limits,
    );
    later = own !== undefined && isPassed ? [...own, ...later] : own;
  }
  return later;
}

/** Of policies that are not known everything is denied. */
function flattenAll(
  policies: readonly (readonly SidecarRule[] | undefined)[],
  later: readonly FlatRule[],
  limits: Limits,
): readonly (readonly FlatRule[])[] | undefined {
  const lists: (readonly FlatRule[])[] = [];
  for (const rules of policies) {
    const flat = rules === undefined ? [NOTHING_ALLOWED] : flatten(rules, later, limits);
    if (flat === undefined) return undefined;
    lists.push(flat);
  }
  return lists;
}

/** `later`: what decides about a request that a rule passes. `undefined` beyond the limits. */
function flatten(
  rules: readonly SidecarRule[],
  later: readonly FlatRule[],
  limits: Limits,
): readonly FlatRule[] | undefined {
  const flat: FlatRule[] = [];
  for (const { rule, criteria } of rules.flatMap((each) =>
    criteriaOf(each).map((one) => ({ rule: each, criteria: one })),
  )) {
    if (rule.action === "Pass") {
      for (const each of later) {
        const both = bothOf(criteria, each, limits);
        if (limits.areExceeded || (both !== undefined && !limits.take(both))) return undefined;
        if (both !== undefined) flat.push(both);
      }
    }
    const own: FlatRule = { action: rule.action === "Allow" ? "allow" : "deny", ...criteria };
    if (!limits.take(own)) return undefined;
    flat.push(own);
  }
  return flat;
}

/** What the rules of one tier, and of those that it passes to, may cost. */
class Limits {
  private rules = 0;
  private criteria = 0;
  private pairs = 0;
  private readonly lists = new Set<NetList>();

  constructor(private readonly ranges: NetRanges) {}

  get areExceeded(): boolean {
    return this.rules > MOST_RULES || this.criteria > MOST_CRITERIA || this.pairs > MOST_PAIRS;
  }

  /** Returns whether there may be this one, too. */
  take(rule: FlatRule): boolean {
    this.rules += 1;
    for (const { nets = [], netLists, notNets, ports = [] } of [rule.source, rule.destination]) {
      this.criteria += nets.length + ports.length;
      for (const list of [...netLists, ...notNets]) this.takeList(list);
    }
    return !this.areExceeded;
  }

  private takeList(list: NetList): void {
    if (this.lists.has(list)) return;
    this.lists.add(list);
    this.criteria += list.reduce((sum, net) => sum + addressCount(net), 0);
  }

  mayTry(pairs: number): boolean {
    this.pairs += pairs;
    return this.pairs <= MOST_PAIRS;
  }

  /** Nothing is in both. */
  areApart(some: NetList, others: NetList): boolean {
    return this.ranges.areApart(some, others);
  }
}

/** What a network counts as a member of a set: those that are smaller than /24 become addresses. */
function addressCount(net: string): number {
  const length = Number(net.slice(net.indexOf("/") + 1));
  const rest = (net.includes(":") ? 128 : 32) - length;
  return rest < 8 ? 2 ** rest : 1;
}

/** Lists of networks, read once. */
class NetRanges {
  private compared = 0;
  private readonly known = new Map<NetList, readonly (readonly AddressRange[])[]>();
  private readonly apart = new Map<NetList, Map<NetList, boolean>>();

  areApart(some: NetList, others: NetList): boolean {
    const answers = this.apart.get(some) ?? new Map<NetList, boolean>();
    this.apart.set(some, answers);
    const known = answers.get(others);
    if (known !== undefined) return known;
    this.compared += some.length + others.length;
    if (this.compared > MOST_COMPARED_NETS) return false;
    const [one, other] = [this.rangesOf(some), this.rangesOf(others)];
    const answer = one.every((ranges, index) => !overlap(ranges, other[index] ?? []));
    answers.set(others, answer);
    return answer;
  }

  private rangesOf(list: NetList): readonly (readonly AddressRange[])[] {
    const before = this.known.get(list);
    if (before !== undefined) return before;
    const prefixes = list.map(prefixOf);
    const ranges = ([4, 6] as const).map((family) => mergedRanges(prefixes, family));
    this.known.set(list, ranges);
    return ranges;
  }
}

/** Both in order. */
function overlap(some: readonly AddressRange[], others: readonly AddressRange[]): boolean {
  let next = 0;
  for (const { first, last } of some) {
    let other = others[next];
    while (other !== undefined && other.last.value < first.value) {
      next += 1;
      other = others[next];
    }
    if (other !== undefined && other.first.value <= last.value) return true;
  }
  return false;
}

/** The rule matches what one of them matches. No identity leads past a rule that denies. */
function criteriaOf({ action, family, source, destination, http }: SidecarRule): readonly Criteria[] {
  const { identities: _, ...byAddress } = source;
  return peersOf(ofFamily(action === "Deny" ? byAddress : source, family)).flatMap((from) =>
    peersOf(destination).map((to) => ({ source: from, destination: to, ...(http === undefined ? {} : { http }) })),
  );
}

const EVERYWHERE = { 4: "0.0.0.0/0", 6: "::/0" } as const;

function ofFamily(peer: SidecarPeer, family: 4 | 6 | undefined): SidecarPeer {
  if (family === undefined) return peer;
  const { nets = [EVERYWHERE[family]] } = peer;
  return { ...peer, nets: nets.filter((net) => net.includes(":") === (family === 6)) };
}

function peersOf(peer: SidecarPeer): readonly FlatPeer[] {
  const { nets, notNets = [], sets = [], notSets = [], ports, notPorts, identities } = peer;
  if (nets?.length === 0) return [];
  const excluded = notPorts === undefined ? undefined : portsOutside(notPorts.ranges);
  const common: FlatPeer = {
    ...(nets === undefined ? {} : { nets }),
    netLists: [],
    notNets: notNets.length === 0 ? [] : [notNets],
    sets,
    notSets: notPorts?.set === undefined ? notSets : [...notSets, notPorts.set],
    identities: identities === undefined ? [] : [identities],
  };
  return portChoices(ports).flatMap((choice) => {
    const allowed = commonPorts(choice.ranges, excluded);
    if (allowed?.length === 0) return [];
    return {
      ...common,
      sets: choice.set === undefined ? sets : [...sets, choice.set],
      ...(allowed === undefined ? {} : { ports: allowed }),
    };
  });
}

interface PortChoice {
  readonly ranges?: readonly Range[];
  readonly set?: string;
}

/** By number or by name. */
function portChoices(ports: SidecarPorts | undefined): readonly PortChoice[] {
  if (ports === undefined) return [{}];
  const { ranges, set } = ports;
  return [...(ranges.length === 0 ? [] : [{ ranges }]), ...(set === undefined ? [] : [{ set }])];
}

function portsOutside(ranges: readonly Range[]): readonly Range[] {
  let outside: readonly Range[] = [[0, LAST_PORT]];
  for (const [first, last] of ranges) {
    outside = outside.flatMap(([from, to]): readonly Range[] => [
      ...(from < first ? [[from, Math.min(to, first - 1)] as const] : []),
      ...(to > last ? [[Math.max(from, last + 1), to] as const] : []),
    ]);
  }
  return outside;
}

function commonPorts(
  some: readonly Range[] | undefined,
  others: readonly Range[] | undefined,
): readonly Range[] | undefined {
  if (some === undefined || others === undefined) return some ?? others;
  return some.flatMap(([first, last]) =>
    others.flatMap(([from, to]): readonly Range[] => {
      const [start, end] = [Math.max(first, from), Math.min(last, to)];
      return start <= end ? [[start, end]] : [];
    }),
  );
}

/** `undefined` if nothing can match both, or beyond the limits. Rules that pass have no `http`. */
function bothOf(criteria: Criteria, rule: FlatRule, limits: Limits): FlatRule | undefined {
  if (!limits.mayTry(1)) return undefined;
  const source = bothPeers(criteria.source, rule.source, limits);
  const destination = source === undefined ? undefined : bothPeers(criteria.destination, rule.destination, limits);
  return source === undefined || destination === undefined ? undefined : { ...rule, source, destination };
}

function bothPeers(one: FlatPeer, other: FlatPeer, limits: Limits): FlatPeer | undefined {
  const [some, others] = [listsOf(one), listsOf(other)];
  if (some.some((list) => others.some((each) => limits.areApart(list, each)))) return undefined;
  if (!limits.mayTry((one.ports?.length ?? 0) * (other.ports?.length ?? 0))) return undefined;
  const ports = commonPorts(one.ports, other.ports);
  if (ports?.length === 0) return undefined;
  return {
    ...(ports === undefined ? {} : { ports }),
    netLists: union(some, others),
    notNets: union(one.notNets, other.notNets),
    sets: union(one.sets, other.sets),
    notSets: union(one.notSets, other.notSets),
    identities: union(one.identities, other.identities),
  };
}

function listsOf({ nets, netLists }: FlatPeer): readonly NetList[] {
  return nets === undefined ? netLists : [nets, ...netLists];
}

function union<Each>(some: readonly Each[], others: readonly Each[]): readonly Each[] {
  return [...new Set([...some, ...others])];
}

function prefixOf(text: string): Prefix {
  const prefix = parsePrefix(text);
  if (prefix === undefined) throw new Error(`network ${JSON.stringify(text)} of a compiled rule is not a prefix`);
  return prefix;
}
