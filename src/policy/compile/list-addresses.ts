/**
 * How many addresses the lists of policies can hold, at most, before any is built.
 *
 *   a selector   the addresses of all that have the rarest of the labels that it requires (`==`, `in`); all, if it requires none
 *   named ports  the same of its selector, with each port that has a name; but at most the ports of its names and protocol
 *   a service    those of its endpoints
 *
 * So it costs nothing to ask about a selector of everything, and a pod that starts or ends changes the counts of its labels,
 * and the sums of the namespaces whose policies require one of them.
 */
import { parsed } from "../effective-selector.ts";
import { type AnyReference, referenceText } from "../table/names.ts";
import { namedPort, type Requirement, requirementsOf, type WeighedLabels } from "./label-index.ts";

/** What of a weight counts for a list. */
type Part = "addresses" | "ports";

type SelectorReference = Exclude<AnyReference, { readonly kind: "service" }>;

/** Sums of the lists of one namespace. */
export interface Sum {
  /** Of the lists that require a label, and of services. */
  required: number;
  /** How many lists can hold everything. */
  everything: number;
}

interface CountedList {
  readonly reference: AnyReference;
  readonly part: Part;
  /** For each group of labels of which it requires one, what has one of them. Of a service, its endpoints. */
  readonly groups: Group[];
  /** Of the groups. */
  fewest: number;
  /** The sums that contain it. */
  readonly sums: Set<Sum>;
}

interface Group {
  readonly list: CountedList;
  sum: number;
}

interface CountedValue {
  readonly total: Record<Part, number>;
  readonly groups: Set<Group>;
}

export class ListAddresses {
  private readonly lists = new Map<string, CountedList>();
  /** Of the labels that a list requires: by value. */
  private readonly values = new Map<string, Map<string, CountedValue>>();
  private readonly usesOfLabel = new Map<string, number>();
  /** Labels that nothing was counted of yet. */
  private readonly uncounted = new Set<string>();
  /** The addresses of all that can be selected. */
  private everything = 0;

  constructor(
    private readonly known: {
      /** All that selectors can select. */
      readonly entities: () => Iterable<WeighedLabels>;
      readonly endpointsOf: (service: AnyReference & { readonly kind: "service" }) => number;
    },
  ) {}

  /** Before the entity is among those of `entities` as it is now. */
  change(before: WeighedLabels | undefined, now: WeighedLabels | undefined): void {
    this.countLabels();
    if (before !== undefined) this.weigh(before, -1);
    if (now !== undefined) this.weigh(now, 1);
  }

  /** The service has other endpoints. */
  changeService(reference: AnyReference, endpoints: number): void {
    const [group] = this.lists.get(referenceText(reference))?.groups ?? [];
    if (group !== undefined) addToGroup(group, endpoints - group.sum);
  }

  of(reference: AnyReference): number {
    this.countLabels();
    const list = this.lists.get(referenceText(reference));
    return list === undefined ? 0 : this.mostOf(list);
  }

  total(sum: Sum): number {
    // Before the sum is read.
    this.countLabels();
    return sum.required + sum.everything * this.everything;
  }

  add(sum: Sum, reference: AnyReference): void {
    const list = this.lists.get(referenceText(reference)) ?? this.create(reference);
    list.sums.add(sum);
    if (list.groups.length === 0) sum.everything += 1;
    else sum.required += list.fewest;
  }

  remove(sum: Sum, reference: AnyReference): void {
    this.countLabels();
    const list = this.lists.get(referenceText(reference));
    if (list === undefined || !list.sums.delete(sum)) return;
    if (list.groups.length === 0) sum.everything -= 1;
    else sum.required -= list.fewest;
    if (list.sums.size === 0) this.delete(list);
  }

  private mostOf(list: CountedList): number {
    return list.groups.length === 0 ? this.everything : list.fewest;
  }

  private create(reference: AnyReference): CountedList {
    const part = reference.kind === "named port" ? "ports" : "addresses";
    const list: CountedList = { reference, part, groups: [], fewest: 0, sums: new Set() };
    this.lists.set(referenceText(reference), list);
    if (reference.kind === "service") {
      list.groups.push({ list, sum: this.known.endpointsOf(reference) });
      list.fewest = fewestOf(list);
      return list;
    }
    for (const requirements of groupsOf(reference)) {
      const group: Group = { list, sum: 0 };
      for (const { label, value } of requirements) {
        const counted = this.valueOf(label, value);
        counted.groups.add(group);
        group.sum += counted.total[part];
        this.usesOfLabel.set(label, (this.usesOfLabel.get(label) ?? 0) + 1);
      }
      list.groups.push(group);
    }
    list.fewest = fewestOf(list);
    return list;
  }

  private delete({ reference, groups }: CountedList): void {
    this.lists.delete(referenceText(reference));
    if (reference.kind === "service") return;
    for (const [index, requirements] of groupsOf(reference).entries()) {
      for (const { label, value } of requirements) {
        const group = groups[index];
        if (group !== undefined) this.values.get(label)?.get(value)?.groups.delete(group);
        this.forgetUnused(label, value);
        const uses = (this.usesOfLabel.get(label) ?? 1) - 1;
        if (uses > 0) this.usesOfLabel.set(label, uses);
        else if (this.usesOfLabel.delete(label)) this.values.delete(label);
      }
    }
  }

  private valueOf(label: string, value: string): CountedValue {
    const values = this.values.get(label) ?? new Map<string, CountedValue>();
    if (!this.values.has(label)) this.uncounted.add(label);
    this.values.set(label, values);
    const counted = values.get(value) ?? { total: { addresses: 0, ports: 0 }, groups: new Set() };
    values.set(value, counted);
    return counted;
  }

  /** Names of pods are values of labels too. */
  private forgetUnused(label: string, value: string): void {
    const { total, groups } = this.valueOf(label, value);
    if (total.addresses + total.ports === 0 && groups.size === 0) this.values.get(label)?.delete(value);
  }

  /** One pass for all labels that were required since the last: a policy may require thousands. */
  private countLabels(): void {
    if (this.uncounted.size === 0) return;
    const labels = new Set(this.uncounted);
    this.uncounted.clear();
    for (const entity of this.known.entities()) this.weighLabels(entity, 1, labels);
  }

  private weigh(entity: WeighedLabels, sign: 1 | -1): void {
    this.everything += sign * (entity.weight?.addresses ?? 0);
    this.weighLabels(entity, sign);
  }

  private weighLabels({ effective, weight }: WeighedLabels, sign: 1 | -1, labels?: ReadonlySet<string>): void {
    if (weight === undefined) return;
    for (const label of Object.keys(effective)) {
      if (labels?.has(label) === false || !this.values.has(label)) continue;
      const { total, groups } = this.valueOf(label, effective[label] ?? "");
      total.addresses += sign * weight.addresses;
      total.ports += sign * weight.ports;
      for (const group of groups) addToGroup(group, sign * weight[group.list.part]);
      this.forgetUnused(label, effective[label] ?? "");
    }
    if (labels?.has(PORTS) === false || !this.values.has(PORTS)) return;
    for (const [port, count] of weight.named) {
      const { total, groups } = this.valueOf(PORTS, port);
      total.ports += sign * count;
      for (const group of groups) addToGroup(group, sign * count);
      this.forgetUnused(PORTS, port);
    }
  }
}

/** Counted like a label whose values are the ports. No label has this name. */
const PORTS = " named port ";

/** Of each group, what is in the list has one. */
function groupsOf(reference: SelectorReference): readonly (readonly Requirement[])[] {
  const groups = requirementsOf(parsed(reference.selector));
  if (reference.kind !== "named port") return groups;
  const { protocol, names } = reference;
  return [...groups, names.map((name) => ({ label: PORTS, value: namedPort(protocol, name) }))];
}

export function emptySum(): Sum {
  return { required: 0, everything: 0 };
}

function addToGroup(group: Group, more: number): void {
  const { list } = group;
  const wasRarest = group.sum === list.fewest;
  group.sum += more;
  // Thousands of lists may require a label that many pods have, and one that few have.
  if (!wasRarest && group.sum >= list.fewest) return;
  const before = list.fewest;
  list.fewest = fewestOf(list);
  const change = list.fewest - before;
  if (change !== 0) for (const sum of list.sums) sum.required += change;
}

function fewestOf({ groups }: CountedList): number {
  return groups.reduce((least, { sum }) => Math.min(least, sum), Number.POSITIVE_INFINITY);
}
