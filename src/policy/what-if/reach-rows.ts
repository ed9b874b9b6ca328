/** What changes, or is allowed, between groups: as few rows as say it, each about groups that have the same. Pure. */

import type { EndClass, PairReach, ReachCell, Verdict } from "./reach.ts";
import type { Group } from "./reach-groups.ts";

export interface ReachRow {
  readonly sources: readonly Group[];
  readonly destinations: readonly Group[];
  /** `TCP 80, 443`; `everything`. */
  readonly packets: string;
  /** Absent: of both IP versions. */
  readonly family?: 4 | 6;
}

type Groups = ReadonlyMap<EndClass, readonly Group[]>;

export interface RowOptions {
  readonly groups: Groups;
  /** Only pairs with an end in it. */
  readonly namespace?: string | undefined;
  /** Of what the members of two groups may send, one text; without it each is a row. */
  readonly united?: (packets: ReadonlySet<string>) => string;
}

/** The packets of each pair that `chosen` takes. */
export function reachRows(
  pairs: Iterable<PairReach>,
  { groups, namespace, united }: RowOptions,
  chosen: (cell: ReachCell) => boolean,
): readonly ReachRow[] {
  const rows = new RowBuilder(groups);
  // Most pairs have the same cells as others.
  const texts = new Map<PairReach["cells"], string>();
  for (const { source, destination, cells } of pairs) {
    const text = texts.get(cells) ?? takenText(cells, chosen);
    texts.set(cells, text);
    if (text === "") continue;
    for (const from of groups.get(source) ?? []) {
      for (const to of groups.get(destination) ?? []) {
        if (isOfNamespace(namespace, from, to)) rows.add(from, to, text, source.family);
      }
    }
  }
  return united === undefined ? rows.merged() : rows.united(united).merged();
}

function takenText(cells: readonly ReachCell[], chosen: (cell: ReachCell) => boolean): string {
  const taken = cells.filter(chosen);
  return taken.length === 0 ? "" : packetsText(taken, cells);
}

/** `undefined`: any. */
export function isOfNamespace(namespace: string | undefined, from: Group, to: Group): boolean {
  return namespace === undefined || from.namespace === namespace || to.namespace === namespace;
}

/** Workloads that are a group by themselves: there is no pair of one with itself, so a row that has all others is about all. */
function groupsOfOne(groups: Groups): ReadonlySet<Group> {
  const byGroup = Map.groupBy(
    Array.from(groups, ([each, own]) => own.map((group) => ({ group, each }))).flat(),
    ({ group }) => group,
  );
  return new Set(
    Array.from(byGroup).flatMap(([group, parts]) => {
      const families = new Set(parts.map(({ each }) => each.family));
      const isOne = parts.every(({ each }) => each.ends.length === 1) && families.size === parts.length;
      return group.kind === "workload" && isOne ? [group] : [];
    }),
  );
}

/** Sources of the same packets to one destination. */
interface RowToOne {
  readonly destination: number;
  readonly how: number;
  readonly sources: number[];
}

/** Groups, and packets with an IP version, as numbers: a large cluster has millions of pairs. */
class RowBuilder {
  private readonly groups: readonly Group[];
  private readonly indexes: ReadonlyMap<Group, number>;
  private readonly alone: ReadonlySet<number>;
  private readonly families: ReadonlySet<4 | 6>;
  private readonly packets: string[] = [];
  private readonly packetIndexes = new Map<string, number>();
  /** By packets, then by both groups: the IP versions, as bits. */
  private readonly pairs: Map<number, number>[] = [];

  constructor(private readonly byClass: Groups) {
    this.groups = [...new Set([...byClass.values()].flat())].sort(byName);
    this.indexes = new Map(this.groups.map((group, index) => [group, index]));
    this.alone = new Set(Array.from(groupsOfOne(byClass), (group) => this.indexOf(group)));
    this.families = new Set(
      Array.from(byClass.keys()).flatMap(({ kind, family }) => (kind === "workload" ? [family] : [])),
    );
  }

  add(source: Group, destination: Group, packets: string, family: 4 | 6): void {
    const key = this.indexOf(source) * this.groups.length + this.indexOf(destination);
    this.put(key, packets, FAMILY_BITS[family]);
  }

  private put(key: number, packets: string, bits: number): void {
    const index = this.packetIndexes.get(packets) ?? this.packets.push(packets) - 1;
    this.packetIndexes.set(packets, index);
    const pairs = this.pairs[index] ?? new Map();
    this.pairs[index] = pairs;
    pairs.set(key, (pairs.get(key) ?? 0) | bits);
  }

  united(text: (packets: ReadonlySet<string>) => string): RowBuilder {
    const all = new Map<number, { readonly packets: Set<string>; bits: number }>();
    for (const [index, pairs] of this.pairs.entries()) {
      for (const [key, bits] of pairs) {
        const pair = all.get(key) ?? { packets: new Set(), bits: 0 };
        all.set(key, pair);
        pair.packets.add(this.packets[index] ?? "");
        pair.bits |= bits;
      }
    }
    const made = new RowBuilder(this.byClass);
    for (const [key, { packets, bits }] of all) made.put(key, text(packets), bits);
    return made;
  }

  /** All sources of the same packets to one destination, then all destinations of the same sources. */
  merged(): readonly ReachRow[] {
    const toOne = this.toOne();
    const keyWith = (sources: readonly number[], { how }: RowToOne) => `${how} ${sources.join(" ")}`;
    const withItself = ({ sources, destination }: RowToOne) =>
      this.alone.has(destination) && !sources.includes(destination)
        ? [...sources, destination].sort((left, right) => left - right)
        : sources;
    const counts = new Map<string, number>();
    for (const row of toOne) {
      const key = keyWith(withItself(row), row);
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    const merged = new Map<string, RowToOne & { readonly destinations: number[] }>();
    for (const row of toOne) {
      const extended = withItself(row);
      const sources = (counts.get(keyWith(extended, row)) ?? 0) > 1 ? extended : row.sources;
      const key = keyWith(sources, row);
      const same = merged.get(key) ?? { ...row, sources, destinations: [] };
      merged.set(key, same);
      same.destinations.push(row.destination);
    }
    return Array.from(merged.values(), ({ sources, destinations, how }) => {
      const [packets, bits] = [this.packets[how >> 2] ?? "", how & 3];
      const isOfAll = bits === 3 || this.families.size < 2;
      return {
        ...{ sources: this.groupsAt(sources), destinations: this.groupsAt(destinations), packets },
        ...(isOfAll ? {} : { family: bits === FAMILY_BITS[4] ? 4 : 6 }),
      };
    });
  }

  private toOne(): readonly RowToOne[] {
    return this.pairs.flatMap((pairs, packets) => {
      const rows = new Map<number, RowToOne>();
      for (const [pair, bits] of pairs) {
        const [source, destination] = [Math.floor(pair / this.groups.length), pair % this.groups.length];
        const key = destination * 4 + bits;
        const row = rows.get(key) ?? { destination, how: packets * 4 + bits, sources: [] };
        rows.set(key, row);
        row.sources.push(source);
      }
      for (const { sources } of rows.values()) sources.sort((left, right) => left - right);
      return [...rows.values()].sort((left, right) => left.destination - right.destination);
    });
  }

  private indexOf(group: Group): number {
    return this.indexes.get(group) ?? -1;
  }

  private groupsAt(indexes: readonly number[]): readonly Group[] {
    return indexes.flatMap((index) => this.groups[index] ?? []);
  }
}

const FAMILY_BITS = { 4: 1, 6: 2 } as const;

function byName(left: Group, right: Group): number {
  return left.name < right.name ? -1 : 1;
}

/** All of a kind, or of a namespace, in one word. */
export function groupsText(groups: readonly Group[], all: readonly Group[]): string {
  const workloads = groups.filter(({ kind }) => kind === "workload");
  const others = wholeNames(
    groups.filter(({ kind }) => kind !== "workload"),
    all,
  );
  const everyWorkload = all.filter(({ kind }) => kind === "workload");
  if (workloads.length > 1 && workloads.length === everyWorkload.length) return ["all workloads", ...others].join(", ");
  const names = Array.from(
    Map.groupBy(workloads, ({ namespace }) => namespace),
    ([namespace, own]) => {
      const ofNamespace = everyWorkload.filter((each) => each.namespace === namespace);
      return own.length > 1 && own.length === ofNamespace.length ? [`${namespace}/*`] : wholeNames(own, ofNamespace);
    },
  );
  return [...names.flat(), ...others].join(", ");
}

/** All parts of one have its name. */
function wholeNames(groups: readonly Group[], all: readonly Group[]): readonly string[] {
  const parts = Map.groupBy(all, ({ kind, whole }) => `${kind} ${whole}`);
  const own = Map.groupBy(groups, ({ kind, whole }) => `${kind} ${whole}`);
  return Array.from(own).flatMap(([key, some]) =>
    some.length === parts.get(key)?.length ? some.slice(0, 1).map(({ whole }) => whole) : some.map(({ name }) => name),
  );
}

export const EVERYTHING = "everything";

/** The shorter of what it is and what it is not. `all`: of the pair. */
export function packetsText(taken: readonly ReachCell[], all: readonly ReachCell[]): string {
  const rest = all.filter((cell) => !taken.includes(cell));
  if (rest.length === 0) return EVERYTHING;
  const [text, others] = [cellsText(taken), cellsText(rest)];
  return others.length < text.length && taken.some(({ protocol }) => protocol === undefined)
    ? `all but ${others}`
    : text;
}

const NAMES: ReadonlyMap<number, string> = new Map([
  ...([
    [6, "TCP"],
    [17, "UDP"],
    [132, "SCTP"],
    [1, "ICMP"],
    [58, "ICMPv6"],
  ] as const),
]);
const LAST_PORT = 65_535;

function cellsText(cells: readonly ReachCell[]): string {
  const byProtocol = Map.groupBy(cells, ({ protocol }) => protocol);
  return Array.from(byProtocol, ([protocol, own]) => {
    if (protocol === undefined) return "other protocols";
    const name = NAMES.get(protocol) ?? `protocol ${protocol}`;
    const details = new Set(own.map(detailOf));
    return details.has("") ? name : `${name} ${[...details].join(", ")}`;
  }).join("; ");
}

function detailOf({ destination, source, icmp }: ReachCell): string {
  if (icmp !== undefined) {
    const code = icmp.code === undefined ? "" : ` code ${icmp.code}`;
    return icmp.type === undefined ? "other types" : `type ${icmp.type}${code}`;
  }
  const isOfEvery = destination === undefined || (destination.first === 0 && destination.last === LAST_PORT);
  const port = isOfEvery ? "" : rangeText(destination);
  if (source === undefined) return port;
  return `${port === "" ? "any port" : port} from ${rangeText(source)}`;
}

function rangeText({ first, last }: { readonly first: number; readonly last: number }): string {
  return first === last ? `${first}` : `${first}-${last}`;
}

export function isDeniedNow({ before, after }: Readonly<Record<"before" | "after", Verdict>>): boolean {
  return before === "allowed" && after === "denied";
}

export function isAllowedNow({ before, after }: Readonly<Record<"before" | "after", Verdict>>): boolean {
  return before === "denied" && after === "allowed";
}
