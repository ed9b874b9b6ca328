/**
 * The kernel sets that rules refer to, and their content: the addresses of what a selector selects, named ports,
 * and the endpoints of services.
 *
 * A set exists while a rendered rule uses it. Its members are counted: two endpoints with the same address are one
 * element, which stays until both are gone.
 */
import { type Address, addressBytes, type Family, formatAddress } from "../../ip/address.ts";
import { mergedRanges } from "../../ip/merged-ranges.ts";
import { formatPrefix, type Prefix } from "../../ip/prefix.ts";
import type { DataType } from "../../linux/nftables/data-type.ts";
import { keyRange } from "../../linux/nftables/intervals.ts";
import type { NftElement } from "../../linux/nftables/set.ts";
import { concatenate, portValue, protocolValue } from "../../linux/nftables/value.ts";
import { concernsNodes } from "../../model/node-members.ts";
import type { NamedPortReference, SetReference } from "../effective-rule.ts";
import type { SelectorText } from "../effective-selector.ts";
import { type AnyReference, referenceText, setName } from "../table/names.ts";
import type { TableBuilder } from "../table/table-builder.ts";
import type { Entity } from "./entity.ts";
import { LabelIndex } from "./label-index.ts";
import { ListAddresses } from "./list-addresses.ts";
import { elementsOfRanges } from "./range-elements.ts";
import { SetHistory } from "./set-history.ts";
import { addTo, removeFrom } from "./sets-by-key.ts";

/** A network behind a service: `ports` is empty if the service has none. */
export interface ServiceMember {
  readonly address: Address;
  readonly ports: readonly { readonly protocol: number; readonly port: number }[];
}

/** An element of a set of this family. */
interface Member extends NftElement {
  readonly family: Family;
  readonly identity: string;
}

/**
 * What an entity adds to the sets of the selectors that select it. Few pods of a large cluster are selected on one node, so
 * elements are made only for those that are.
 */
type Contribution = Pick<Entity, "addresses" | "prefixes" | "ports" | "isNode">;

interface ActiveSet {
  readonly reference: AnyReference;
  readonly names: Readonly<Record<Family, string>>;
  uses: number;
  /** How often an element was added again while it existed. */
  readonly repeats: Map<string, number>;
  /** Networks by their text, counted. */
  readonly prefixes: Map<string, { readonly prefix: Prefix; count: number }>;
  /** While sidecars follow the set. */
  history?: SetHistory;
}

export interface SetListener {
  /** A set got its first network, or lost its last: the rules that use it must be rendered again. */
  prefixesChanged(reference: SetReference): void;
  /** Many addresses are about to be added, which `addresses` has counted: what can hold too many may be released, and nothing retained. */
  grown?(): void;
}

const MOST_GROWTH = 200;
const FAMILIES = [4, 6] as const;
const NOTHING: Contribution = { addresses: [], prefixes: [], ports: [] };

export class MemberSets {
  /** How many addresses lists can hold, also those that no set exists of. */
  readonly addresses: ListAddresses;
  private readonly index: LabelIndex;
  private readonly contributions = new Map<string, Contribution>();
  private readonly services = new Map<string, readonly ServiceMember[]>();
  private readonly active = new Map<string, ActiveSet>();
  private readonly bySelector = new Map<SelectorText, Set<ActiveSet>>();
  /** Sets whose networks changed since the last flush. */
  private readonly rangesToWrite = new Set<ActiveSet>();

  /** Addresses that were added since `grown` was called. */
  private growth = 0;

  constructor(
    private readonly table: TableBuilder,
    private readonly listener: SetListener,
  ) {
    const eachSet = (selector: SelectorText, visit: (set: ActiveSet) => void) =>
      this.bySelector.get(selector)?.forEach(visit);
    this.index = new LabelIndex({
      matched: (selector, name) => eachSet(selector, (set) => this.contribute(set, this.contributionOf(name), 1)),
      unmatched: (selector, name) => eachSet(selector, (set) => this.contribute(set, this.contributionOf(name), -1)),
      reweighed: (before, now) => this.addresses.change(before, now),
    });
    this.addresses = new ListAddresses({
      entities: () => this.index.all,
      endpointsOf: ({ namespace, name, withPorts }) =>
        endpointCount(this.services.get(`${namespace}/${name}`) ?? [], withPorts),
    });
  }

  putEntity(name: string, entity: Entity): void {
    this.withdraw(name);
    this.index.put(name, entity);
    this.grow(entity.weight.addresses);
    this.contributions.set(name, entity);
    this.contributeEverywhere(name, entity, 1);
  }

  deleteEntity(name: string): void {
    this.withdraw(name);
    this.index.delete(name);
  }

  putParent(name: string, labels: Readonly<Record<string, string>> | undefined): void {
    this.index.putParent(name, labels);
  }

  /** Labels that endpoints of containers inherit, by target; `undefined`: they have none any more. */
  giveLabels(changes: ReadonlyMap<string, Readonly<Record<string, string>> | undefined>): void {
    this.index.giveLabels(changes);
  }

  putService(namespace: string, name: string, members: readonly ServiceMember[]): void {
    const service = `${namespace}/${name}`;
    const before = this.services.get(service) ?? [];
    const references = [true, false].map((withPorts) => ({ kind: "service" as const, namespace, name, withPorts }));
    for (const reference of references) {
      this.addresses.changeService(reference, endpointCount(members, reference.withPorts));
    }
    // Before any set is changed: sets may be released meanwhile.
    this.grow(references.reduce((sum, { withPorts }) => sum + endpointCount(members, withPorts), 0));
    if (members.length === 0) this.services.delete(service);
    else this.services.set(service, members);
    for (const reference of references) {
      const set = this.active.get(referenceText(reference));
      if (set === undefined) continue;
      // Added first, so that members that stay are never without a count.
      this.contributeService(set, members, 1);
      this.contributeService(set, before, -1);
    }
  }

  hasPrefixes(reference: SetReference): boolean {
    return (this.active.get(referenceText(reference))?.prefixes.size ?? 0) > 0;
  }

  /** The members of both families that concern TCP, and the networks. `undefined` if no rule uses the set. */
  historyOf(reference: AnyReference): SetHistory | undefined {
    const set = this.active.get(referenceText(reference));
    if (set !== undefined) set.history ??= new SetHistory(() => this.membersForTcp(set));
    return set?.history;
  }

  private *membersForTcp({ names, prefixes }: ActiveSet): Iterable<string> {
    for (const family of FAMILIES) {
      for (const identity of this.table.sets.get(names[family])?.elements.keys() ?? []) {
        if (concernsTcp(identity)) yield identity;
      }
    }
    yield* prefixes.keys();
  }

  retain(reference: AnyReference): void {
    const text = referenceText(reference);
    const active = this.active.get(text);
    if (active !== undefined) {
      active.uses += 1;
      return;
    }
    const names = { 4: setName(reference, 4), 6: setName(reference, 6) };
    const set: ActiveSet = { reference, names, uses: 1, repeats: new Map(), prefixes: new Map() };
    this.active.set(text, set);
    const comment = text.slice(0, LONGEST_COMMENT);
    for (const family of FAMILIES) {
      this.table.createSet({ name: names[family], key: keyOf(reference, family), comment });
    }
    if (reference.kind === "service") {
      this.contributeService(set, this.services.get(`${reference.namespace}/${reference.name}`) ?? [], 1);
      return;
    }
    const { selector } = reference;
    // What the index reports while it registers the selector is for sets that exist already: there are none.
    this.index.register(selector);
    for (const name of this.index.membersOf(selector)) this.contribute(set, this.contributionOf(name), 1);
    addTo(this.bySelector, selector, set);
  }

  release(reference: AnyReference): void {
    const text = referenceText(reference);
    const set = this.active.get(text);
    if (set === undefined) return;
    set.uses -= 1;
    if (set.uses > 0) return;
    this.active.delete(text);
    this.rangesToWrite.delete(set);
    for (const family of FAMILIES) {
      this.table.deleteSet(set.names[family]);
      this.table.deleteSet(setName(reference, family, "prefixes"));
    }
    if (reference.kind === "service") return;
    const { selector } = reference;
    removeFrom(this.bySelector, selector, set);
    if (!this.bySelector.has(selector)) this.index.unregister(selector);
  }

  /** Writes the merged ranges of the sets whose networks changed. */
  flushRanges(): void {
    for (const set of this.rangesToWrite) for (const family of FAMILIES) this.writeRanges(set, family);
    this.rangesToWrite.clear();
  }

  private grow(addresses: number): void {
    this.growth += addresses;
    if (this.growth < MOST_GROWTH) return;
    this.growth = 0;
    this.listener.grown?.();
  }

  private contributionOf(name: string): Contribution {
    return this.contributions.get(name) ?? NOTHING;
  }

  private withdraw(name: string): void {
    const before = this.contributions.get(name);
    if (before === undefined) return;
    this.contributeEverywhere(name, before, -1);
    this.contributions.delete(name);
  }

  private contributeEverywhere(name: string, contribution: Contribution, sign: 1 | -1): void {
    for (const selector of this.index.matchesOf(name)) {
      for (const set of this.bySelector.get(selector) ?? []) this.contribute(set, contribution, sign);
    }
  }

  private contribute(set: ActiveSet, contribution: Contribution, sign: 1 | -1): void {
    if (contribution.isNode && !isOfNodes(set.reference)) return;
    if (set.reference.kind === "named port") {
      for (const member of namedPortMembers(set.reference, contribution)) this.count(set, member, sign);
      return;
    }
    for (const address of contribution.addresses) this.count(set, addressMember(address), sign);
    for (const prefix of contribution.prefixes) this.countPrefix(set, prefix, sign);
  }

  private contributeService(set: ActiveSet, members: readonly ServiceMember[], sign: 1 | -1): void {
    if (set.reference.kind !== "service") return;
    const { withPorts } = set.reference;
    for (const { address, ports } of members) {
      const member = addressMember(address);
      if (!withPorts) this.count(set, member, sign);
      else for (const port of ports) this.count(set, portMember(member, port), sign);
    }
  }

  private count(set: ActiveSet, member: Member, sign: 1 | -1): void {
    const { identity } = member;
    const name = set.names[member.family];
    const repeats = set.repeats.get(identity) ?? 0;
    if (sign === 1) {
      if (this.table.hasElement(name, identity)) set.repeats.set(identity, repeats + 1);
      else {
        this.table.putElement(name, identity, member);
        if (concernsTcp(identity)) set.history?.added(identity);
      }
    } else if (repeats > 1) set.repeats.set(identity, repeats - 1);
    else if (repeats === 1) set.repeats.delete(identity);
    else {
      this.table.deleteElement(name, identity);
      if (concernsTcp(identity)) set.history?.removed(identity);
    }
  }

  private countPrefix(set: ActiveSet, prefix: Prefix, sign: 1 | -1): void {
    const hadSome = set.prefixes.size > 0;
    const text = formatPrefix(prefix);
    const count = (set.prefixes.get(text)?.count ?? 0) + sign;
    if (count === 0) set.history?.removed(text);
    else if (!set.prefixes.has(text)) set.history?.added(text);
    if (count === 0) set.prefixes.delete(text);
    else set.prefixes.set(text, { prefix, count });
    this.rangesToWrite.add(set);
    const hasSome = set.prefixes.size > 0;
    if (hadSome === hasSome) return;
    for (const family of FAMILIES) {
      const name = setName(set.reference, family, "prefixes");
      if (hasSome) this.table.createSet({ name, key: keyOf(set.reference, family), holdsIntervals: true });
      else this.table.deleteSet(name);
    }
    if (set.reference.kind === "selected") this.listener.prefixesChanged(set.reference);
  }

  private writeRanges(set: ActiveSet, family: Family): void {
    const name = setName(set.reference, family, "prefixes");
    const existing = this.table.sets.get(name);
    if (existing === undefined) return;
    const prefixes = Array.from(set.prefixes.values(), ({ prefix }) => prefix);
    const wanted = elementsOfRanges(mergedRanges(prefixes, family).map(keyRange));
    for (const identity of [...existing.elements.keys()]) {
      if (!wanted.has(identity)) this.table.deleteElement(name, identity);
    }
    for (const [identity, element] of wanted) {
      if (!existing.elements.has(identity)) this.table.putElement(name, identity, element);
    }
  }
}

function isOfNodes(reference: AnyReference): boolean {
  return reference.kind !== "service" && concernsNodes(reference.selector);
}

function endpointCount(members: readonly ServiceMember[], withPorts: boolean): number {
  return withPorts ? members.reduce((sum, { ports }) => sum + ports.length, 0) : members.length;
}

const LONGEST_COMMENT = 120;
const TCP = 6;

/** An address, or an address with a port of TCP. */
function concernsTcp(identity: string): boolean {
  return !identity.includes(" ") || identity.includes(` ${TCP} `);
}

function keyOf(reference: AnyReference, family: Family): readonly DataType[] {
  const address = family === 4 ? "ipv4_addr" : "ipv6_addr";
  const withPorts = reference.kind === "named port" || (reference.kind === "service" && reference.withPorts);
  return withPorts ? [address, "inet_proto", "inet_service"] : [address];
}

function namedPortMembers({ names, protocol }: NamedPortReference, contribution: Contribution): readonly Member[] {
  return contribution.ports
    .filter((port) => names.includes(port.name) && port.protocol === protocol)
    .flatMap((port) => contribution.addresses.map((address) => portMember(addressMember(address), port)));
}

function addressMember(address: Address): Member {
  return { family: address.family, identity: formatAddress(address), key: addressBytes(address) };
}

function portMember(
  { family, identity, key }: Member,
  { protocol, port }: { readonly protocol: number; readonly port: number },
): Member {
  return {
    family,
    identity: `${identity} ${protocol} ${port}`,
    key: concatenate(key, protocolValue(protocol), portValue(port)),
  };
}
