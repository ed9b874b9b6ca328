/** What rules ask about an address: each question once, however many rules ask it. Pure. */
import type { Address } from "../../ip/address.ts";
import { parsePrefixOrAddress, prefixContains } from "../../ip/prefix.ts";
import { concernsNodes } from "../../model/node-members.ts";
import { type EntityRule, isNamedPort } from "../../model/policy-rule.ts";
import { protocolNumber } from "../../model/protocols.ts";
import type { Labels } from "../../selector/selector.ts";
import type { IndexedJudge } from "../judge/indexed-judge.ts";
import { criteriaOf, type LabelCriteria, labelNamesOf, labelsOf, selectionOf } from "../judge/members.ts";
import type { AnyMember, PolicyResources } from "../judge/resources.ts";

export type PeerTest =
  /** Is a member with the address selected? */
  | { readonly kind: "selected"; readonly criteria: LabelCriteria }
  /** Is it in one of them? */
  | { readonly kind: "nets"; readonly nets: readonly string[] }
  /** Which ports of this name do the selected members with the address declare? */
  | { readonly kind: "named port"; readonly criteria: LabelCriteria; readonly name: string }
  /** With which ports is it behind the Service? */
  | { readonly kind: "service"; readonly namespace: string | undefined; readonly name: string };

interface Asking {
  readonly namespace: string | undefined;
  /** Whom the policy selects, at the side of the endpoint itself. */
  readonly own: LabelCriteria;
  readonly isOwnSide: boolean;
}

/** All that one side of a rule asks. */
export function testsOf(entity: EntityRule, { namespace, own, isOwnSide }: Asking): readonly PeerTest[] {
  const criteria = criteriaOf(entity, namespace);
  const declaring = criteria ?? (isOwnSide ? own : {});
  const names = [...(entity.ports ?? []), ...(entity.notPorts ?? [])].filter(isNamedPort);
  const { nets = [], notNets = [], notSelector, services } = entity;
  return [
    ...(criteria === undefined ? [] : [{ kind: "selected", criteria } as const]),
    ...(notSelector?.trim() ? [{ kind: "selected", criteria: { selector: notSelector } } as const] : []),
    ...[nets, notNets].filter((list) => list.length > 0).map((list) => ({ kind: "nets", nets: list }) as const),
    ...names.map((name) => ({ kind: "named port", criteria: declaring, name: String(name) }) as const),
    ...(services === undefined
      ? []
      : [{ kind: "service", namespace: services.namespace ?? namespace, name: services.name } as const]),
  ];
}

/** What the tests say in one state of the resources. */
export class PeerFacts {
  private readonly members = new Map<string, readonly MemberFacts[]>();
  private readonly selections = new WeakMap<LabelCriteria, (labels: Labels) => boolean>();
  private readonly services: ReadonlyMap<string, NonNullable<PolicyResources["serviceEndpoints"]>>;

  constructor(
    private readonly resources: PolicyResources,
    private readonly judge: IndexedJudge,
  ) {
    this.services = Map.groupBy(
      resources.serviceEndpoints ?? [],
      ({ namespace, service }) => `${namespace}/${service}`,
    );
  }

  /** The same text: the same answer. `text`: of the address. */
  answer(test: PeerTest, address: Address, text: string): string {
    switch (test.kind) {
      case "selected":
        return this.selected(test.criteria, address, text).length > 0 ? "1" : "0";
      case "nets":
        return isInAny(test.nets, address) ? "1" : "0";
      case "named port": {
        const ports = this.selected(test.criteria, address, text).flatMap(({ member }) => portsOf(member));
        return JSON.stringify(ports.filter(([name]) => name === test.name).sort());
      }
      case "service": {
        const slices = this.services.get(`${test.namespace}/${test.name}`) ?? [];
        const around = slices.filter(({ addresses }) => addresses.some((own) => isInAny([own], address)));
        return around.length === 0 ? "0" : JSON.stringify(around.map(({ ports }) => ports));
      }
    }
  }

  /** All that the tests can see of an address. `names`: of labels. */
  signature(address: Address, text: string, { names, nets, services, hasNames }: Visible): string {
    const members = this.membersAt(address, text).map(({ member, labels }) => {
      const seen = Object.entries(labels).filter(([name]) => names.has(name));
      return JSON.stringify([member.kind === "Node", seen.sort(compareNames), hasNames ? portsOf(member) : []]);
    });
    const around = nets.filter((net) => isInAny([net], address));
    const behind = services.map((test) => this.answer(test, address, text));
    return JSON.stringify([members.sort(), around, behind]);
  }

  private selected(criteria: LabelCriteria, address: Address, text: string): readonly MemberFacts[] {
    const selects = this.selections.get(criteria) ?? selectionOf(criteria);
    this.selections.set(criteria, selects);
    const mayBeNode = concernsNodes(criteria.selector ?? "");
    return this.membersAt(address, text).filter(
      ({ member, labels }) => (mayBeNode || member.kind !== "Node") && selects(labels),
    );
  }

  private membersAt(address: Address, text: string): readonly MemberFacts[] {
    const known = this.members.get(text);
    if (known !== undefined) return known;
    const found = this.judge
      .membersWith(address)
      .map((member) => ({ member, labels: labelsOf(member, this.resources) }));
    this.members.set(text, found);
    return found;
  }
}

interface MemberFacts {
  readonly member: AnyMember;
  readonly labels: Labels;
}

/** What some tests can see. */
export interface Visible {
  readonly names: ReadonlySet<string>;
  readonly nets: readonly string[];
  readonly services: readonly PeerTest[];
  readonly hasNames: boolean;
}

export function visibleTo(tests: Iterable<PeerTest>): Visible {
  const [names, nets, services] = [new Set<string>(), new Set<string>(), new Map<string, PeerTest>()];
  let hasNames = false;
  for (const test of tests) {
    if (test.kind === "service") services.set(JSON.stringify(test), test);
    else if (test.kind === "nets") for (const net of test.nets) nets.add(net);
    else {
      for (const name of labelNamesOf(test.criteria)) names.add(name);
      hasNames ||= test.kind === "named port";
    }
  }
  return { names, nets: [...nets], services: [...services.values()], hasNames };
}

function isInAny(nets: readonly string[], address: Address): boolean {
  return nets.some((net) => {
    const prefix = parsedNet(net);
    return prefix !== undefined && prefixContains(prefix, address);
  });
}

const parsedNets = new Map<string, ReturnType<typeof parsePrefixOrAddress>>();
const MOST_PARSED = 100_000;

function parsedNet(net: string) {
  if (parsedNets.has(net)) return parsedNets.get(net);
  if (parsedNets.size >= MOST_PARSED) parsedNets.clear();
  const prefix = parsePrefixOrAddress(net);
  parsedNets.set(net, prefix);
  return prefix;
}

function portsOf(
  member: AnyMember,
): readonly (readonly [name: string | undefined, protocol: number | undefined, port: number])[] {
  if (!("ports" in member.spec)) return [];
  return (member.spec.ports ?? []).map(({ name, protocol, port }) => [name, protocolNumber(protocol), port] as const);
}

function compareNames([left]: readonly [string, unknown], [right]: readonly [string, unknown]): number {
  return left < right ? -1 : 1;
}
