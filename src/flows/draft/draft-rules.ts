/**
 * Rules that allow recorded connections of one group of workloads in one direction. Pure.
 *
 * A connection has several placements: by the Service that was asked for, by labels and the name of a port, by labels, by a network
 * set, by address. Who drafts takes the first one that the judge agrees with. Rules about the same peer become one with all
 * ports, and peers with the same ports one with all of them.
 */
import { counted, listed } from "../../counted.ts";
import { identity } from "../../identity.ts";
import { addressBits, parseAddress } from "../../ip/address.ts";
import { comparePrefixes, formatPrefix, parsePrefix, prefixAround } from "../../ip/prefix.ts";
import type { EntityRule, PolicyRule } from "../../model/policy-rule.ts";
import { ICMP_PROTOCOLS, PROTOCOLS_WITH_PORTS } from "../../model/protocols.ts";
import type { Direction } from "../../policy/effective-rule.ts";
import type { PolicyResources } from "../../policy/judge/resources.ts";
import { titleOfEnd } from "../flow-packet.ts";
import type { FlowEnd, FlowRecord } from "../flow-record.ts";
import { byText, conditionOf, type WorkloadGroup, type WorkloadGroups } from "./workload-groups.ts";

/** One way to allow a connection. */
export interface Placement {
  readonly peer: Peer;
  readonly protocol: number;
  readonly icmp?: { readonly type: number; readonly code: number };
  /** Of the destination. */
  readonly port?: number | string;
}

export type Peer =
  | { readonly kind: "service"; readonly namespace: string; readonly name: string }
  | { readonly kind: "workloads"; readonly group: WorkloadGroup }
  | { readonly kind: "network set"; readonly title: string; readonly entity: EntityRule }
  /** `whose`: absent if nobody known has it. */
  | { readonly kind: "address"; readonly address: string; readonly whose?: string };

export interface DraftedRule {
  readonly rule: PolicyRule;
  /** Whom it is about, and what is more general than what was recorded. */
  readonly comments: readonly string[];
  /** The network set that it selects, which the draft contains too. */
  readonly set?: DraftedSet;
}

export interface DraftedSet {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly nets: readonly string[];
  readonly comments: readonly string[];
}

/** The length of networks that stand for addresses outside; absent: single addresses. */
export type Aggregation = Readonly<Partial<Record<4 | 6, number>>>;

/** The most readable first. */
export function placementsOf(
  flow: FlowRecord,
  direction: Direction,
  { groups, resources }: { readonly groups: WorkloadGroups; readonly resources: PolicyResources },
): readonly Placement[] {
  const { protocol, icmp, source, destination, backend, seenAs } = flow;
  const arrives = backend ?? destination;
  const peerEnd = direction === "egress" ? arrives : source;
  const ownGroup = groups.of(direction === "egress" ? source : arrives);
  const group = groups.of(peerEnd);
  const hasPorts = PROTOCOLS_WITH_PORTS.has(protocol);
  const isIcmp = ICMP_PROTOCOLS.has(protocol) && icmp !== undefined && icmp.type <= MOST_ICMP_TYPE;
  const to = (peer: Peer, port: number | string | undefined = arrives.port): Placement => ({
    ...{ peer, protocol },
    ...(isIcmp ? { icmp } : {}),
    ...(hasPorts && port !== undefined ? { port } : {}),
  });
  const named = namedPort(direction === "egress" ? group : ownGroup, protocol, arrives.port);
  const isOfService = direction === "egress" && resources.serviceEndpoints !== undefined && hasPorts;
  if (protocol < 1 || protocol > LAST_PROTOCOL) return [];
  const { namespace, name } = destination;
  const whose = peerEnd.kind === "outside" ? undefined : titleOfEnd(peerEnd);
  const at = (address: string, port = arrives.port) =>
    to({ kind: "address", address, ...(whose === undefined ? {} : { whose }) }, port);
  const selected: readonly Peer[] =
    group?.choice === undefined ? setsOf(peerEnd, ownGroup, resources) : [{ kind: "workloads", group }];
  const addresses =
    direction === "egress"
      ? [at(arrives.address), at(destination.address, destination.port)]
      : [at(seenAs?.address ?? source.address), at(source.address)];
  const ofService = destination.kind === "service" && namespace !== undefined && name !== undefined;
  return [
    ...(isOfService && ofService ? [to({ kind: "service", namespace, name })] : []),
    ...(named === undefined ? [] : selected.map((peer) => to(peer, named))),
    ...selected.map((peer) => to(peer)),
    ...(named === undefined ? [] : addresses.map((placement) => ({ ...placement, port: named }))),
    ...addresses,
  ];
}

const LAST_PROTOCOL = 255;
/** Rules cannot name the type 255. */
const MOST_ICMP_TYPE = 254;

/** The name by which all of the group that run now declare the port. */
function namedPort(group: WorkloadGroup | undefined, protocol: number, port: number | undefined): string | undefined {
  const present = group?.members.flatMap(({ endpoint }) => endpoint ?? []) ?? [];
  const [first, ...others] = present.map(({ spec: { ports = [] } }) => ports);
  if (first === undefined || port === undefined) return undefined;
  const isIt = (declared: (typeof first)[number]) =>
    declared.port === port && PROTOCOL_NAMES[protocol]?.toLowerCase() === String(declared.protocol).toLowerCase();
  const names = first
    .filter(isIt)
    .map(({ name }) => name)
    .filter((name) => name !== "")
    .toSorted();
  return names.find((name) => others.every((ports) => ports.some((each) => each.name === name && isIt(each))));
}

/** The network set that has the address, if a selector can be about it alone. */
function setsOf(
  { kind, namespace, name }: FlowEnd,
  own: WorkloadGroup | undefined,
  { networkSets, globalNetworkSets }: PolicyResources,
): readonly Peer[] {
  if (kind !== "network set" || name === undefined) return [];
  const all = namespace === undefined ? globalNetworkSets : networkSets;
  const set = all.find(({ metadata }) => metadata.name === name && metadata.namespace === namespace);
  const isNamed = ([label, value]: [string, string]) => !/['"\\]/.test(value) && /^[\w./-]+$/.test(label);
  const labels = Object.entries(set?.metadata.labels ?? {})
    .filter(isNamed)
    .toSorted();
  if (labels.length === 0) return [];
  const selector = labels.map(conditionOf).join(" && ");
  const place = namespace === undefined ? { namespaceSelector: "global()" } : inNamespace(namespace, own?.namespace);
  const title = `network set ${namespace === undefined ? name : `${namespace}/${name}`}`;
  return [{ kind: "network set", title, entity: { selector, ...place } }];
}

function inNamespace(namespace: string, own: string | undefined): EntityRule {
  return namespace === own ? {} : { namespaceSelector: `${identity.labelPrefix}name == '${namespace}'` };
}

const PROTOCOL_NAMES: Readonly<Record<number, string>> = {
  ...{ 1: "ICMP", 6: "TCP", 17: "UDP", 58: "ICMPv6", 132: "SCTP", 136: "UDPLite" },
};

export interface PlacedFlows {
  readonly placement: Placement;
  /** How many were recorded. */
  readonly flows: number;
}

export interface RuleContext {
  /** Whose rules these are. */
  readonly group: WorkloadGroup;
  readonly direction: Direction;
  readonly aggregation: Aggregation;
  readonly resources: PolicyResources;
  /** A name for a set that is not taken. */
  readonly nameSet: (wanted: string) => string;
}

/** The same for the same connections in any order. */
export function rulesFor(placed: readonly PlacedFlows[], context: RuleContext): readonly DraftedRule[] {
  const aggregated = placed.map((each) => ({ ...each, placement: asNetwork(each.placement, context.aggregation) }));
  const byPeer = [...Map.groupBy(aggregated, peerKey)].toSorted(byText(([key]) => key));
  const together = Map.groupBy(
    byPeer.map(([, same]) => withPorts(same)),
    (each) => mergeKey(each, context),
  );
  const lists = [...together.values()];
  const crowded = Map.groupBy(lists, crowdKey)
    .values()
    .filter((same) => same.length > MOST_ADDRESS_RULES);
  const isCrowded = new Set([...crowded].map(([first]) => first && crowdKey(first)).filter((key) => key !== ""));
  const single = lists.filter((same) => !isCrowded.has(crowdKey(same))).flatMap((same) => rulesTogether(same, context));
  const united = byPeer.flatMap(([, same]) => same);
  const merged = [...isCrowded].map((key) => united.filter((each) => key === crowdKey([withPorts([each])])));
  return [...single, ...merged.flatMap((same) => crowdedRules(same, context))];
}

/** More rules about addresses are one, of each address with each port. */
const MOST_ADDRESS_RULES = 20;

/** Of what is about addresses; the others have an empty one. */
function crowdKey([first]: readonly PeerPorts[]): string {
  if (first === undefined) return "";
  const [{ peer, protocol, icmp }] = first.placements;
  return peer.kind === "address" ? JSON.stringify([peer.whose === undefined, protocol, icmp?.type, icmp?.code]) : "";
}

function crowdedRules(same: readonly PlacedFlows[], context: RuleContext): readonly DraftedRule[] {
  const note = "generalised: each of these addresses with each of these ports";
  return addressRules([withPorts(same)], context).map((each) => ({ ...each, comments: [...each.comments, note] }));
}

/** An address outside becomes the network that stands for it. */
function asNetwork(placement: Placement, aggregation: Aggregation): Placement {
  const { peer } = placement;
  if (peer.kind !== "address" || peer.whose !== undefined) return placement;
  return { ...placement, peer: { ...peer, address: networkOf(peer.address, aggregation) ?? peer.address } };
}

/** `undefined`: the address cannot be read. */
export function networkOf(text: string, aggregation: Aggregation): string | undefined {
  const address = parseAddress(text);
  if (address === undefined) return undefined;
  const bits = addressBits(address.family);
  return formatPrefix(prefixAround(address, Math.min(aggregation[address.family] ?? bits, bits)));
}

interface PeerPorts {
  readonly placements: readonly [Placement, ...Placement[]];
  /** Numbers first; `undefined`: any, as for protocols without ports. */
  readonly ports: readonly (number | string)[] | undefined;
  /** The distinct ports of a range that stands for them. */
  readonly seenPorts?: number;
  readonly flows: number;
}

/** The ports of a Service are those that it has: it says their protocols too. */
function peerKey({ placement: { peer, protocol, icmp } }: PlacedFlows): string {
  const order = ["service", "workloads", "network set", "address"].indexOf(peer.kind);
  const how = peer.kind === "service" ? [] : [protocol, icmp?.type, icmp?.code];
  return JSON.stringify([order, ...peerWords(peer), ...how]);
}

function peerWords(peer: Peer): readonly unknown[] {
  switch (peer.kind) {
    case "service":
      return [peer.namespace, peer.name];
    case "workloads":
      return [peer.group.namespace, peer.group.choice?.selector];
    case "network set":
      return [peer.title];
    case "address":
      return [peer.whose ?? "", peer.address];
  }
}

/** More are one range: a list that long is not read. */
const MOST_PORTS = 15;

function withPorts(same: readonly PlacedFlows[]): PeerPorts {
  const [first, ...others] = same.map(({ placement }) => placement);
  if (first === undefined) throw new RangeError("no connection");
  const all = [...new Set(same.flatMap(({ placement: { port } }) => port ?? []))];
  const names = all.filter((port) => typeof port === "string").toSorted();
  const numbers = all.filter((port) => typeof port === "number").toSorted((left, right) => left - right);
  const flows = same.reduce((sum, each) => sum + each.flows, 0);
  const placements = [first, ...others] as const;
  if (same.some(({ placement: { port } }) => port === undefined)) return { placements, ports: undefined, flows };
  if (numbers.length <= MOST_PORTS) return { placements, ports: [...numbers, ...names], flows };
  return { placements, ports: [`${numbers[0]}:${numbers.at(-1)}`, ...names], seenPorts: numbers.length, flows };
}

/** Peers that one rule can name: addresses, and workloads of a namespace that differ in the value of one label. */
function mergeKey({ placements: [{ peer, protocol, icmp }], ports }: PeerPorts, { group }: RuleContext): string {
  const how = JSON.stringify([protocol, icmp?.type, icmp?.code, ports]);
  if (peer.kind === "address") return `address ${peer.whose === undefined ? "outside" : "known"} ${how}`;
  if (peer.kind === "workloads") {
    const [[label] = [""], ...others] = peer.group.choice?.labels ?? [];
    const isOwn = peer.group.namespace === group.namespace;
    if (others.length === 0) return `label ${isOwn} ${peer.group.namespace} ${label} ${how}`;
  }
  return JSON.stringify([peer.kind, ...peerWords(peer), how]);
}

function rulesTogether(same: readonly PeerPorts[], context: RuleContext): readonly DraftedRule[] {
  const [first] = same;
  if (first === undefined) return [];
  const [{ peer }] = first.placements;
  const { namespace } = context.group;
  switch (peer.kind) {
    case "service": {
      const services = { name: peer.name, ...(peer.namespace === namespace ? {} : { namespace: peer.namespace }) };
      const rule = drafted(same, { services }, [`Service ${peer.namespace}/${peer.name}`], context);
      const others = otherPortsOf(peer, same, context.resources);
      const note = others.length === 0 ? [] : [`generalised: the Service also has ${listed(others, MOST_TITLES)}`];
      return [{ ...rule, comments: [...rule.comments, ...note] }];
    }
    case "network set":
      return [drafted(same, peer.entity, [peer.title], context)];
    case "workloads":
      return labelRules(same, context);
    case "address":
      return addressRules(same, context);
  }
}

/** Of the Service, those to which no connection was recorded. */
function otherPortsOf(
  service: Extract<Peer, { kind: "service" }>,
  same: readonly PeerPorts[],
  { serviceEndpoints = [] }: PolicyResources,
): readonly string[] {
  const word = (protocol: number, port: number | string | undefined) =>
    `${PROTOCOL_NAMES[protocol] ?? protocol} ${port}`;
  const used = new Set(same.flatMap(({ placements }) => placements.map(({ protocol, port }) => word(protocol, port))));
  const own = serviceEndpoints.filter((each) => each.namespace === service.namespace && each.service === service.name);
  const all = new Set(own.flatMap(({ ports }) => ports.map(({ protocol, port }) => word(protocol, port))));
  return [...all].filter((each) => !used.has(each)).toSorted();
}

/** As many values of the label in a rule as a selector may have. */
const MOST_VALUES = 8;
const LONG_SELECTOR = 60;

function labelRules(same: readonly PeerPorts[], context: RuleContext): readonly DraftedRule[] {
  const rules: DraftedRule[] = [];
  const length = ({ placements: [{ peer }] }: PeerPorts) =>
    peer.kind === "workloads" ? (peer.group.choice?.selector.length ?? 0) : 0;
  // The text of all of them must not be too long for a selector.
  const size = same.some((each) => length(each) > LONG_SELECTOR) ? 1 : MOST_VALUES;
  for (let start = 0; start < same.length; start += size) {
    const part = same.slice(start, start + size);
    const groups = part.flatMap(({ placements: [{ peer }] }) => (peer.kind === "workloads" ? [peer.group] : []));
    const [{ namespace } = context.group] = groups;
    const selector = selectorOfAll(groups);
    const also = [...new Set(groups.flatMap(({ choice }) => choice?.alsoSelected ?? []))].toSorted();
    const titles = new Set(groups.flatMap((group) => group.titles));
    const others = also.filter((title) => !titles.has(title));
    const rule = drafted(part, { selector, ...inNamespace(namespace, context.group.namespace) }, [...titles], context);
    const note = others.length === 0 ? [] : [`generalised: the selector also selects ${listed(others, MOST_TITLES)}`];
    rules.push({ ...rule, comments: [...rule.comments, ...note] });
  }
  return rules;
}

function selectorOfAll(groups: readonly WorkloadGroup[]): string {
  const [first, ...others] = groups.flatMap(({ choice }) => choice ?? []);
  if (first === undefined) return "";
  if (others.length === 0) return first.selector;
  const values = [...new Set([first, ...others].flatMap(({ labels }) => labels.map(([, value]) => value)))].toSorted();
  return `${first.labels[0]?.[0]} in {${values.map((value) => `'${value}'`).join(", ")}}`;
}

/** More addresses are in a network set. */
const MOST_INLINE = 4;

function addressRules(same: readonly PeerPorts[], context: RuleContext): readonly DraftedRule[] {
  const peers = same.flatMap(({ placements }) =>
    placements.flatMap(({ peer }) => (peer.kind === "address" ? peer : [])),
  );
  const isOutside = peers[0]?.whose === undefined;
  const nets = networksOf(peers.map(({ address }) => address));
  const isGeneral = nets.some((net) => !isAddress(net));
  const whose = [...new Set(peers.flatMap((peer) => peer.whose ?? []))].toSorted();
  const words = isGeneral ? counted(nets.length, "network") : counted(nets.length, "address", "addresses");
  const title = isOutside ? `outside: ${words}` : listed(whose, MOST_TITLES);
  const notes = [
    ...(isGeneral ? ["generalised: networks as --aggregate says"] : []),
    ...(isOutside ? [] : ["by address, which another one may have later"]),
  ];
  if (nets.length <= MOST_INLINE) {
    const rule = drafted(same, { nets: [...nets] }, [title], context);
    return [{ ...rule, comments: [...rule.comments, ...notes] }];
  }
  const { group, direction, nameSet } = context;
  const name = nameSet(setName(group, direction, same));
  const labels = { [SET_LABEL]: name };
  const rule = drafted(same, { selector: conditionOf([SET_LABEL, name]) }, [title], context);
  const set: DraftedSet = { ...{ name, namespace: group.namespace, labels, nets }, comments: [title, ...notes] };
  return [{ ...rule, comments: [...rule.comments, ...notes], set }];
}

function isAddress(net: string): boolean {
  const prefix = parsePrefix(net);
  return prefix !== undefined && prefix.length === addressBits(prefix.network.family);
}

const SET_LABEL = "network-set";

function setName({ name }: WorkloadGroup, direction: Direction, [first]: readonly PeerPorts[]): string {
  const { protocol = 0 } = first?.placements[0] ?? {};
  const port = first?.ports?.[0] ?? PROTOCOL_NAMES[protocol] ?? protocol;
  return `${name}-${direction === "egress" ? "to" : "from"}-${port}`;
}

/** Of addresses and networks, sorted; what cannot be read is left out. */
function networksOf(texts: readonly string[]): readonly string[] {
  const nets = new Set(texts.flatMap((text) => (text.includes("/") ? text : (networkOf(text, {}) ?? []))));
  return [...nets]
    .flatMap((net) => parsePrefix(net) ?? [])
    .toSorted(comparePrefixes)
    .map(formatPrefix);
}

/** `titles`: of the peers. */
function drafted(
  same: readonly PeerPorts[],
  entity: EntityRule,
  titles: readonly string[],
  { direction }: RuleContext,
): DraftedRule {
  const [first] = same;
  const { protocol = 0, icmp } = first?.placements[0] ?? {};
  const flows = same.reduce((sum, each) => sum + each.flows, 0);
  const ports = first?.ports === undefined || entity.services !== undefined ? {} : { ports: [...first.ports] };
  const own = direction === "ingress" && Object.keys(ports).length > 0 ? { destination: ports } : {};
  const isDns = same.some(({ placements }) => placements.some(isOfDns)) || first?.ports?.includes(53) === true;
  const range = Math.max(0, ...same.map(({ seenPorts }) => seenPorts ?? 0));
  const about = `${isDns ? "DNS: " : ""}${direction === "egress" ? "to" : "from"} ${listed(titles, MOST_TITLES)}`;
  return {
    rule: {
      action: "Allow",
      ...(entity.services === undefined ? { protocol: PROTOCOL_NAMES[protocol] ?? protocol } : {}),
      ...(icmp === undefined ? {} : { icmp }),
      ...(direction === "egress" ? { destination: { ...entity, ...ports } } : { source: entity, ...own }),
    },
    comments: [
      `${about} (${counted(flows, "flow")})`,
      ...(range === 0 || entity.services !== undefined
        ? []
        : [`generalised: a range, of which ${range} ports were used`]),
    ],
  };
}

/** More peers of a rule are only counted in its comment. */
const MOST_TITLES = 4;

const DNS_SERVICES = ["kube-dns", "coredns"];

function isOfDns({ peer }: Placement): boolean {
  return peer.kind === "service" && DNS_SERVICES.includes(peer.name);
}
