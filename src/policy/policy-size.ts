/**
 * How much the kernel must hold for a policy of a namespace, and how much it may be. What a tenant writes must not
 * keep the node agent from the policies of others: a policy beyond the limits denies everything in the directions of its
 * types. Global policies are not limited: only administrators write them.
 *
 * Lists and rules are counted as they are written, not by what they select at the moment: the same at any time. Addresses
 * are those that the lists can hold at the moment. Pure.
 */
import type { NodeAgentSettings } from "../model/node-agent-configuration.ts";
import { type EntityRule, isNamedPort, type PolicyRule } from "../model/policy-rule.ts";
import { type CommonPolicySpec, typesOf } from "../model/policy-spec.ts";

export interface PolicySize {
  /** Selectors, services, named ports, and long lists of ports or networks: the same text for equal ones. */
  readonly lists: ReadonlySet<string>;
  /** Rules of the kernel, at most. */
  readonly rules: number;
  /** Elements of the long lists that are written in it. */
  readonly written?: number;
}

/** Of all policies of a namespace together. Lists that several have count once. */
export interface PolicyLimits {
  readonly lists: number;
  readonly rules: number;
  /** One policy may have all of them. */
  readonly addresses: number;
}

/** What is counted as it is written. */
export type WrittenSize = Pick<PolicyLimits, "lists" | "rules">;

/** By list, the same text for equal ones: how many addresses it can hold, at most. */
export type ListAddresses = ReadonlyMap<string, number>;

/** One policy may have this share of what its namespace may have. */
const SHARE_OF_POLICY = 1 / 4;

/**
 * Up to this many ranges are compared one by one; more are looked up in a set with a name. An anonymous set of ranges
 * would be empty for the first packets of a rule that is replaced: docs/decisions/policy-batches.md.
 */
export const MOST_COMPARED = 8;
/** If the lists of a rule combine to more rules than this, each is looked up in a set, however short it is. */
export const MOST_COMBINED = 64;

export function policyLimits(settings: NodeAgentSettings): PolicyLimits {
  const { namespacePolicyLists, namespacePolicyRules, namespacePolicyAddresses } = settings;
  return { lists: namespacePolicyLists, rules: namespacePolicyRules, addresses: namespacePolicyAddresses };
}

export function limitsOfOne({ lists, rules, addresses }: PolicyLimits): PolicyLimits {
  return { lists: Math.floor(lists * SHARE_OF_POLICY), rules: Math.floor(rules * SHARE_OF_POLICY), addresses };
}

const knownSizes = new WeakMap<CommonPolicySpec, PolicySize>();

export function sizeOfPolicy(spec: CommonPolicySpec): PolicySize {
  const known = knownSizes.get(spec);
  if (known !== undefined) return known;
  const size = countSize(spec);
  knownSizes.set(spec, size);
  return size;
}

function countSize(spec: CommonPolicySpec): PolicySize {
  const lists = new Set<string>();
  let [rules, written] = [0, 0];
  for (const type of typesOf(spec)) {
    for (const rule of spec[type === "Ingress" ? "ingress" : "egress"] ?? []) {
      const isTooLong = familiesOf(rule).some((family) => combined(rule, family, MOST_COMPARED) > MOST_COMBINED);
      const mostCompared = isTooLong ? 1 : MOST_COMPARED;
      for (const family of familiesOf(rule)) rules += combined(rule, family, mostCompared);
      for (const text of listsOf(rule, mostCompared)) lists.add(text);
      for (const list of longLists(rule, mostCompared)) written += ENDS_OF_RANGE * list.length;
    }
  }
  return { lists, rules, written };
}

/** Why a policy of this size is not carried out, whatever else is in its namespace; `undefined` if it is. The same for similar ones. */
export function problemOfSize({ lists, rules }: PolicySize, limits: PolicyLimits): string | undefined {
  const most = limitsOfOne(limits);
  if (lists.size > most.lists) {
    const what = "different selectors, services, named ports and long lists of ports or networks";
    return `it has more than ${most.lists} ${what}, which is the limit of a policy`;
  }
  if (rules > most.rules)
    return `its rules can be more than ${most.rules} rules of the kernel, which is the limit of a policy`;
  return undefined;
}

/**
 * Those of one namespace, by any text that orders them, that are not carried out, with the reason. `addressesOf` is only
 * asked about policies that have room otherwise.
 */
export function problemsOfSizes(
  sizes: ReadonlyMap<string, PolicySize>,
  limits: PolicyLimits,
  addressesOf: (name: string) => ListAddresses = () => new Map(),
): ReadonlyMap<string, string> {
  const problems = new Map<string, string>();
  const [lists, counted] = [new Set<string>(), new Set<string>()];
  const ofNamespace = problemOfNamespace(limits);
  let [total, addresses] = [0, 0];
  for (const [name, size] of Array.from(sizes).sort(compareSizes)) {
    const problem = problemOfSize(size, limits);
    if (problem !== undefined) problems.set(name, problem);
    else if (total + size.rules <= limits.rules && hasRoom(lists, size.lists, limits.lists)) {
      const further = Array.from(addressesOf(name)).filter(([list]) => !counted.has(list));
      const more = further.reduce((sum, [, count]) => sum + count, 0);
      if (addresses + more > limits.addresses) {
        problems.set(name, problemOfAddresses(limits));
        continue;
      }
      total += size.rules;
      addresses += more;
      for (const text of size.lists) lists.add(text);
      for (const [list] of further) counted.add(list);
    } else problems.set(name, ofNamespace);
  }
  return problems;
}

/** Stops at the first list that does not fit: a namespace beyond its limit costs little more than one at its limit. */
function hasRoom(known: ReadonlySet<string>, more: ReadonlySet<string>, most: number): boolean {
  let count = known.size;
  for (const text of more) if (!known.has(text) && ++count > most) return false;
  return true;
}

function problemOfNamespace({ lists, rules }: PolicyLimits): string {
  const what = `${lists} different selectors, services, named ports and long lists, or ${rules} rules of the kernel`;
  return `the policies of its namespace have together more than ${what}; the largest of them deny`;
}

export function problemOfAddresses({ addresses }: PolicyLimits): string {
  const what = "selectors, services, named ports and long lists of the policies of its namespace";
  return `the ${what} can have together more than ${addresses} addresses; those with the most lists deny`;
}

export function warningOfAddresses({ addresses }: PolicyLimits): string {
  const what = "selectors, services, named ports and long lists of its policies";
  return `the ${what} can have together most of ${addresses} addresses; beyond that, those with the most lists deny`;
}

type Sized = readonly [name: string, size: PolicySize];

/** The smallest first: as many as the limit allows are carried out. */
function compareSizes([leftName, left]: Sized, [rightName, right]: Sized): number {
  return left.lists.size - right.lists.size || left.rules - right.rules || (leftName < rightName ? -1 : 1);
}

function listsOf({ protocol, source = {}, destination = {} }: PolicyRule, mostCompared: number): readonly string[] {
  return [source, destination].flatMap((peer) => {
    const { selector, namespaceSelector, serviceAccounts, notSelector, services } = peer;
    const { ports = [], notPorts = [] } = peer;
    const selected = [selector, namespaceSelector, serviceAccounts];
    return [
      ...(isSelecting(peer) ? [["selected", ...selected]] : []),
      ...(notSelector === undefined ? [] : [["not selected", notSelector]]),
      ...(services === undefined ? [] : [["service", services]]),
      ...[ports, notPorts].flatMap((list) => namedPorts(list, [protocol, ...selected])),
      ...longListsOf(peer, mostCompared).map((list) => ["long", list]),
    ].map((list) => JSON.stringify(list));
  });
}

type LongList = readonly (string | number)[];
/** The kernel has an element for each end of a range. */
const ENDS_OF_RANGE = 2;

function longLists({ source = {}, destination = {} }: PolicyRule, mostCompared: number): readonly LongList[] {
  return [source, destination].flatMap((peer) => longListsOf(peer, mostCompared));
}

function longListsOf(peer: EntityRule, mostCompared: number): readonly LongList[] {
  const { nets = [], notNets = [], ports = [], notPorts = [] } = peer;
  return [nets, notNets, ports, notPorts].filter((list) => list.length > mostCompared);
}

function namedPorts(ports: NonNullable<EntityRule["ports"]>, of: readonly unknown[]): readonly unknown[][] {
  const names = ports.filter(isNamedPort);
  return names.length === 0 ? [] : [["named", names, ...of]];
}

type Family = 4 | 6;

/** `undefined`: one rule for both, since nothing in it depends on the family. */
function familiesOf({ ipVersion, source = {}, destination = {} }: PolicyRule): readonly (Family | undefined)[] {
  if (ipVersion !== undefined) return [ipVersion];
  return [source, destination].some(hasAddresses) ? [4, 6] : [undefined];
}

function hasAddresses(peer: EntityRule): boolean {
  const { nets, notNets = [], ports = [], notPorts = [], services } = peer;
  if ((nets ?? services) !== undefined || isSelecting(peer)) return true;
  return notNets.length > 0 || [...ports, ...notPorts].some(isNamedPort);
}

/** The rules of one family, at most: the alternatives of each list, combined. */
function combined({ source = {}, destination = {} }: PolicyRule, family: Family | undefined, most: number): number {
  const alternatives = (peer: EntityRule) =>
    // Single addresses, and the networks of network sets.
    (isSelecting(peer) ? 2 : 1) * netAlternatives(peer, family, most) * portAlternatives(peer, most);
  return alternatives(source) * alternatives(destination);
}

/** Also a rule that only says what is not selected is about the endpoints of its namespace. */
function isSelecting({ selector, notSelector, namespaceSelector, serviceAccounts }: EntityRule): boolean {
  return (selector ?? notSelector ?? namespaceSelector ?? serviceAccounts) !== undefined;
}

/** Without a network of the family there is no rule for it. */
function netAlternatives({ nets }: EntityRule, family: Family | undefined, most: number): number {
  if (nets === undefined) return 1;
  const { length } = nets.filter((net) => family === undefined || net.includes(":") === (family === 6));
  return length > most ? 1 : length;
}

function portAlternatives({ ports = [] }: EntityRule, most: number): number {
  const names = ports.filter(isNamedPort).length;
  const ranges = ports.length - names;
  return Math.max(1, (ranges > most ? 1 : ranges) + Math.min(1, names));
}
