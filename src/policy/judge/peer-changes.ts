/**
 * Which addresses the selectors and named ports of rules stand for only before, or only after, a change of endpoints,
 * network sets and labels. Looks at what has changed, with each selector once. Addresses are compared one by one: that one
 * network contains another is not noticed. Pure.
 */
import { type Address, addressBits, isSameAddress, parseAddress } from "../../ip/address.ts";
import {
  formatPrefix,
  type Prefix,
  parseInterfaceAddress,
  parsePrefixOrAddress,
  prefixContains,
  singlePrefix,
} from "../../ip/prefix.ts";
import { isFinished } from "../../model/finished-pods.ts";
import { nodeAddresses } from "../../model/node-members.ts";
import type { EntityRule, PolicyRule } from "../../model/policy-rule.ts";
import type { Labels } from "../../selector/selector.ts";
import type { Direction } from "../effective-rule.ts";
import { criteriaOf, type LabelCriteria, labelNamesOf, labelsOf, selectionOf } from "./members.ts";
import type { AnyEndpoint, AnyMember, PolicyResources } from "./resources.ts";

/** Rules in one direction, and whose they are. */
export interface OwnedRules {
  readonly rules: readonly PolicyRule[];
  readonly direction: Direction;
  /** Of the policy; `undefined` for a global one and for a profile. */
  readonly namespace: string | undefined;
  /** Whom the policy selects. */
  readonly scope: LabelCriteria;
}

export class PeerChanges {
  private readonly changed: readonly ChangedMember[];
  /** Those whose labels of the same names changed. */
  private readonly groups: readonly (readonly ChangedMember[])[];
  private readonly former: ReadonlySet<AnyMember | undefined>;
  private readonly byList = new Map<string, readonly Prefix[]>();
  private readonly byRules = new Map<readonly PolicyRule[], RuleDifferences>();
  private holders: ReadonlyMap<string, readonly AnyMember[]> | undefined;

  constructor(
    private readonly before: PolicyResources,
    private readonly after: PolicyResources,
  ) {
    this.changed = changedMembers(before, after);
    this.groups = Array.from(Map.groupBy(this.changed, ({ labels }) => JSON.stringify(labels)).values());
    this.former = new Set(this.changed.map((each) => each.before?.member));
  }

  /** Whether it has other labels, or is another one. */
  isOther(former: AnyMember): boolean {
    return this.former.has(former);
  }

  /** Whether the rules can match other packets, of whatever endpoint. */
  concern(owned: OwnedRules): boolean {
    const { ofPeers, ofOwn } = this.differencesIn(owned);
    return ofPeers.length + ofOwn.length > 0;
  }

  /** Whether the rules can match other packets of a workload, in both its states: these have its own address at one end. */
  concernAt(states: readonly AnyEndpoint[], owned: OwnedRules): boolean {
    const { ofPeers, ofOwn } = this.differencesIn(owned);
    if (ofPeers.length + ofOwn.length === 0) return false;
    if (states.some(({ kind }) => kind === "HostEndpoint")) return true;
    const own = states.map(addressesOf);
    return (
      ofPeers.some((prefix) => !own.every((addresses) => addresses.some((address) => isSingle(prefix, address)))) ||
      ofOwn.some((prefix) => own.flat().some((address) => prefixContains(prefix, address)))
    );
  }

  private differencesIn(owned: OwnedRules): RuleDifferences {
    if (this.changed.length === 0) return NONE;
    const known = this.byRules.get(owned.rules);
    if (known !== undefined) return known;
    const own = owned.direction === "ingress" ? "destination" : "source";
    const at = (side: "source" | "destination") =>
      owned.rules
        .filter(({ action }) => action !== "Log")
        .flatMap((rule) => listsOf(rule[side] ?? {}, owned, side === own))
        .flatMap((list) => this.differencesOf(list));
    const found = { ofPeers: at(own === "source" ? "destination" : "source"), ofOwn: at(own) };
    this.byRules.set(owned.rules, found);
    return found;
  }

  private differencesOf(list: MemberList): readonly Prefix[] {
    const key = JSON.stringify(list);
    const known = this.byList.get(key);
    if (known !== undefined) return known;
    const selects = selectionOf(list.criteria);
    const names = labelNamesOf(list.criteria);
    const concerned = this.groups.flatMap((group) =>
      (group[0]?.labels?.some((label) => names.has(label)) ?? true) ? group : [],
    );
    const former = elementsAmong(concerned, "before", { ...list, selects });
    const present = elementsAmong(concerned, "after", { ...list, selects });
    const found = [...only(former, present), ...only(present, former)]
      .filter(([text, prefix]) => !this.isHeldByOthers(text, prefix, { ...list, selects }))
      .map(([, prefix]) => prefix);
    this.byList.set(key, found);
    return found;
  }

  /** Whether something that has not changed is in the list with the same. */
  private isHeldByOthers(text: string, prefix: Prefix, list: SelectingList): boolean {
    this.holders ??= membersByPrefix(unchangedMembers(this.after, this.changed));
    return (this.holders.get(formatPrefix(prefix)) ?? []).some(
      (member) =>
        elementsOf(member, list.names).some(([own]) => own === text) && list.selects(labelsOf(member, this.before)),
    );
  }
}

/** What only one of the two states has, at the side of the endpoint itself and at the other one. */
interface RuleDifferences {
  readonly ofPeers: readonly Prefix[];
  readonly ofOwn: readonly Prefix[];
}

const NONE: RuleDifferences = { ofPeers: [], ofOwn: [] };

/** What a rule compares an address with; `names`: of ports, which the members declare. */
interface MemberList {
  readonly criteria: LabelCriteria;
  readonly names?: readonly string[];
}

interface SelectingList extends MemberList {
  readonly selects: (labels: Labels) => boolean;
}

function listsOf(entity: EntityRule, { namespace, scope }: OwnedRules, isOwnSide: boolean): readonly MemberList[] {
  const criteria = criteriaOf(entity, namespace);
  const names = [...(entity.ports ?? []), ...(entity.notPorts ?? [])].filter((port) => typeof port === "string");
  const named = names.filter((port) => !/^\d+(:\d+)?$/.test(port));
  return [
    ...(criteria === undefined ? [] : [{ criteria }]),
    ...(entity.notSelector?.trim() ? [{ criteria: { selector: entity.notSelector } }] : []),
    ...(named.length === 0 ? [] : [{ criteria: criteria ?? (isOwnSide ? scope : {}), names: named }]),
  ];
}

type Pair<Member extends AnyMember> = readonly [Member | undefined, Member | undefined];

/** Both states of each, by its name. */
export function pairsOf<Member extends AnyMember>(
  before: readonly Member[],
  after: readonly Member[],
): readonly Pair<Member>[] {
  const nameOf = ({ metadata }: Member) => `${metadata.namespace ?? ""}/${metadata.name}`;
  const former = new Map(before.map((member) => [nameOf(member), member]));
  const present = new Map(after.map((member) => [nameOf(member), member]));
  const gone = before.filter((member) => !present.has(nameOf(member)));
  return [
    ...after.map((member): Pair<Member> => [former.get(nameOf(member)), member]),
    ...gone.map((member): Pair<Member> => [member, undefined]),
  ];
}

interface LabelledMember {
  readonly member: AnyMember;
  readonly labels: Labels;
}

interface ChangedMember {
  readonly before: LabelledMember | undefined;
  readonly after: LabelledMember | undefined;
  /** The names of those that changed; `undefined`: more than labels changed. */
  readonly labels: readonly string[] | undefined;
}

const LISTS = ["endpoints", "hostEndpoints", "networkSets", "globalNetworkSets"] as const;

/** Members that are others, or have other labels. */
function changedMembers(before: PolicyResources, after: PolicyResources): readonly ChangedMember[] {
  const areLabelsKept = before.profiles === after.profiles && before.containerLabels === after.containerLabels;
  const labelled = (member: AnyMember | undefined, resources: PolicyResources) =>
    member === undefined ? undefined : { member, labels: labelsOf(member, resources) };
  return LISTS.filter((name) => !areLabelsKept || before[name] !== after[name])
    .flatMap((name) => pairsOf<AnyMember>(before[name], after[name]))
    .filter(([left, right]) => !areLabelsKept || left !== right)
    .map(([left, right]) => changeBetween(labelled(left, before), labelled(right, after)))
    .filter(({ labels }) => labels?.length !== 0);
}

function changeBetween(before: LabelledMember | undefined, after: LabelledMember | undefined): ChangedMember {
  if (before === undefined || after === undefined || before.member !== after.member)
    return { before, after, labels: undefined };
  const names = [...Object.keys(before.labels), ...Object.keys(after.labels)];
  const others = names.filter((name) => valueIn(before.labels, name) !== valueIn(after.labels, name));
  return { before, after, labels: [...new Set(others)].toSorted() };
}

function valueIn(labels: Labels, name: string): string | undefined {
  return Object.hasOwn(labels, name) ? labels[name] : undefined;
}

function unchangedMembers(after: PolicyResources, changed: readonly ChangedMember[]): readonly AnyMember[] {
  const others = new Set(changed.map((each) => each.after?.member));
  return LISTS.flatMap((name): readonly AnyMember[] => after[name]).filter((member) => !others.has(member));
}

function membersByPrefix(members: readonly AnyMember[]): ReadonlyMap<string, readonly AnyMember[]> {
  const byPrefix = new Map<string, AnyMember[]>();
  for (const member of members) {
    for (const prefix of prefixesOf(member)) {
      const text = formatPrefix(prefix);
      const known = byPrefix.get(text);
      if (known === undefined) byPrefix.set(text, [member]);
      else known.push(member);
    }
  }
  return byPrefix;
}

/** By a text that only the same address, or the same port of the same address, has. */
type Element = readonly [string, Prefix];

function elementsAmong(
  changed: readonly ChangedMember[],
  state: "before" | "after",
  { names, selects }: SelectingList,
): ReadonlyMap<string, Prefix> {
  const members = changed.flatMap((each) => each[state] ?? []).filter(({ labels }) => selects(labels));
  return new Map(members.flatMap(({ member }) => elementsOf(member, names)));
}

function elementsOf(member: AnyMember, names: readonly string[] | undefined): readonly Element[] {
  const prefixes = prefixesOf(member);
  if (names === undefined) return prefixes.map((prefix) => [formatPrefix(prefix), prefix]);
  const declared = "ports" in member.spec ? (member.spec.ports ?? []) : [];
  const ports = declared.filter(({ name }) => name !== undefined && names.includes(name));
  return prefixes.flatMap((prefix) =>
    ports.map(
      ({ name, protocol, port }): Element => [
        `${formatPrefix(prefix)} ${name} ${String(protocol).toLowerCase()} ${port}`,
        prefix,
      ],
    ),
  );
}

function prefixesOf(member: AnyMember): readonly Prefix[] {
  if (member.kind === "NetworkSet" || member.kind === "GlobalNetworkSet")
    return (member.spec.nets ?? []).flatMap((text) => parsePrefixOrAddress(text) ?? []);
  return (member.kind === "Node" ? nodeAddresses(member) : addressesOf(member)).map(singlePrefix);
}

function addressesOf(endpoint: AnyEndpoint): readonly Address[] {
  if (endpoint.kind === "HostEndpoint")
    return (endpoint.spec.expectedIPs ?? []).flatMap((text) => parseAddress(text) ?? []);
  if (isFinished(endpoint)) return [];
  return (endpoint.spec.ipNetworks ?? []).flatMap(
    (text) => parseInterfaceAddress(text)?.address ?? parseAddress(text) ?? [],
  );
}

function only(these: ReadonlyMap<string, Prefix>, others: ReadonlyMap<string, Prefix>): readonly Element[] {
  return [...these].filter(([text]) => !others.has(text));
}

function isSingle({ network, length }: Prefix, address: Address): boolean {
  return length === addressBits(address.family) && isSameAddress(network, address);
}
