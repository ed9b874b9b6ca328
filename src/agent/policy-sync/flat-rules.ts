/**
 * What a pod's policies say about requests, as one list of rules that allow or deny: a sidecar of a release before v3.29 knows
 * one tier only. A rule that passes becomes the rules of what comes after it, each with the criteria of both; what matches
 * none of them is denied. Pure.
 *
 * Those sidecars ignore some criteria, so that a rule would match too much: negated networks and ports, and the family. Here
 * they are expressed by criteria that they know.
 */
import { formatPrefix, type Prefix, parsePrefix, prefixCovers } from "../../ip/prefix.ts";
import type {
  HttpMatch,
  SidecarEvaluation,
  SidecarPeer,
  SidecarPolicy,
  SidecarPorts,
  SidecarRule,
} from "../../policy/requests/sidecar-state.ts";

/** The first rule that matches decides; a request that none matches is denied. */
export interface FlatRule {
  readonly action: "allow" | "deny";
  readonly source: FlatPeer;
  readonly destination: FlatPeer;
  readonly http?: HttpMatch;
}

/** All criteria must match. */
export interface FlatPeer {
  /** In one of them; absent: everywhere. */
  readonly nets?: readonly string[];
  readonly notNets: readonly string[];
  readonly sets: readonly string[];
  readonly notSets: readonly string[];
  /** In one of them; absent: every port. */
  readonly ports?: readonly Range[];
  /** Of each of these sets, if the request has an identity. */
  readonly identities: readonly string[];
}

type Range = readonly [first: number, last: number];
type Criteria = Pick<FlatRule, "source" | "destination" | "http">;

const ANYTHING: FlatPeer = { notNets: [], sets: [], notSets: [], identities: [] };
const NOTHING_ALLOWED: FlatRule = { action: "deny", source: ANYTHING, destination: ANYTHING };
const LAST_PORT = 65_535;
/** A sidecar compares a request with all of them. */
const MOST_RULES = 10_000;

/** One list for each policy, and one for the profiles, in order. If there are too many, everything is denied. */
export function flatRules(
  { tiers, profiles }: SidecarEvaluation,
  policies: ReadonlyMap<string, SidecarPolicy>,
): readonly (readonly FlatRule[])[] {
  let later: readonly (readonly FlatRule[])[] = [flatten(profiles, [])];
  for (const { defaultAction, policies: keys } of tiers.toReversed()) {
    const after = later.flat();
    const own = keys.map((key) => {
      const rules = policies.get(key)?.rules;
      return rules === undefined ? [NOTHING_ALLOWED] : flatten(rules, after);
    });
    later = defaultAction === "Pass" ? [...own, ...later] : own;
    if (later.reduce((sum, { length }) => sum + length, 0) > MOST_RULES) return [[NOTHING_ALLOWED]];
  }
  return later;
}

/** `later`: what decides about a request that a rule passes. */
function flatten(rules: readonly SidecarRule[], later: readonly FlatRule[]): readonly FlatRule[] {
  const flat: FlatRule[] = [];
  for (const rule of rules) {
    for (const criteria of criteriaOf(rule)) {
      if (rule.action !== "Pass") flat.push({ action: rule.action === "Allow" ? "allow" : "deny", ...criteria });
      else flat.push(...later.flatMap((each) => bothOf(criteria, each) ?? []), { action: "deny", ...criteria });
      if (flat.length > MOST_RULES) return flat;
    }
  }
  return flat;
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
    notNets,
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

/** `undefined` if nothing can match both. Rules that pass have no `http`. */
function bothOf(criteria: Criteria, rule: FlatRule): FlatRule | undefined {
  const source = bothPeers(criteria.source, rule.source);
  const destination = bothPeers(criteria.destination, rule.destination);
  return source === undefined || destination === undefined ? undefined : { ...rule, source, destination };
}

function bothPeers(one: FlatPeer, other: FlatPeer): FlatPeer | undefined {
  const nets = commonNets(one.nets, other.nets);
  const ports = commonPorts(one.ports, other.ports);
  if (nets?.length === 0 || ports?.length === 0) return undefined;
  return {
    ...(nets === undefined ? {} : { nets }),
    ...(ports === undefined ? {} : { ports }),
    notNets: union(one.notNets, other.notNets),
    sets: union(one.sets, other.sets),
    notSets: union(one.notSets, other.notSets),
    identities: union(one.identities, other.identities),
  };
}

function union(some: readonly string[], others: readonly string[]): readonly string[] {
  return [...new Set([...some, ...others])];
}

function commonNets(
  some: readonly string[] | undefined,
  others: readonly string[] | undefined,
): readonly string[] | undefined {
  if (some === undefined || others === undefined) return some ?? others;
  const prefixes = others.map(prefixOf);
  const common = some.map(prefixOf).flatMap((one) =>
    prefixes.flatMap((other): readonly Prefix[] => {
      if (prefixCovers(one, other)) return [other];
      return prefixCovers(other, one) ? [one] : [];
    }),
  );
  return [...new Set(common.map(formatPrefix))];
}

function prefixOf(text: string): Prefix {
  const prefix = parsePrefix(text);
  if (prefix === undefined) throw new Error(`network ${JSON.stringify(text)} of a compiled rule is not a prefix`);
  return prefix;
}
