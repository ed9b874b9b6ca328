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

/** By what one pair has. */
interface PairRow {
  readonly source: Group;
  readonly destination: Group;
  readonly packets: string;
  readonly family: 4 | 6;
}

type Groups = ReadonlyMap<EndClass, readonly Group[]>;

/** The packets of each pair that `chosen` takes; `namespace`: only pairs with an end in it. */
export function reachRows(
  pairs: Iterable<PairReach>,
  { groups, namespace }: { readonly groups: Groups; readonly namespace?: string | undefined },
  chosen: (cell: ReachCell) => boolean,
): readonly ReachRow[] {
  const rows: PairRow[] = [];
  for (const { source, destination, cells } of pairs) {
    const taken = cells.filter(chosen);
    if (taken.length === 0) continue;
    const packets = packetsText(taken, cells);
    for (const from of groups.get(source) ?? []) {
      for (const to of groups.get(destination) ?? []) {
        if (!isOfNamespace(namespace, from, to)) continue;
        rows.push({ source: from, destination: to, packets, family: source.family });
      }
    }
  }
  const families = new Set(
    Array.from(groups.keys()).flatMap(({ kind, family }) => (kind === "workload" ? [family] : [])),
  );
  return merged(rows, { families, alone: groupsOfOne(groups) });
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

interface Merging {
  readonly families: ReadonlySet<4 | 6>;
  readonly alone: ReadonlySet<Group>;
}

function merged(rows: readonly PairRow[], { families, alone }: Merging): readonly ReachRow[] {
  const byPair = Map.groupBy(rows, ({ source, destination, packets }) => keyOf(source, destination, packets));
  const pairs = Array.from(byPair.values()).flatMap(
    (same): readonly (Omit<PairRow, "family"> & Pick<ReachRow, "family">)[] => {
      const [first] = same;
      if (first === undefined) return [];
      const own = new Set(same.map(({ family }) => family));
      const { family, ...row } = first;
      return [own.size < families.size ? { ...row, family } : row];
    },
  );
  // All sources of the same packets to one destination, then all destinations of the same sources.
  const bySource = Map.groupBy(pairs, ({ destination, packets, family }) => keyOf(destination, packets, family));
  const toOne = Array.from(bySource.values()).flatMap((same) => {
    const [first] = same;
    const sources = [...new Set(same.map(({ source }) => source))].sort(byName);
    return first === undefined ? [] : [{ ...first, sources }];
  });
  const withItself = ({ sources, destination }: (typeof toOne)[number]) =>
    alone.has(destination) && !sources.includes(destination) ? [...sources, destination].sort(byName) : sources;
  const keyWith = (sources: readonly Group[], { packets, family }: (typeof toOne)[number]) =>
    keyOf(...sources, packets, family);
  const alike = Map.groupBy(toOne, (row) => keyWith(withItself(row), row));
  const sourcesOf = (row: (typeof toOne)[number]) => {
    const extended = withItself(row);
    return (alike.get(keyWith(extended, row)) ?? []).length > 1 ? extended : row.sources;
  };
  const byTarget = Map.groupBy(toOne, (row) => keyWith(sourcesOf(row), row));
  return Array.from(byTarget.values()).flatMap((same): readonly ReachRow[] => {
    const [first] = same;
    if (first === undefined) return [];
    const destinations = [...new Set(same.map(({ destination }) => destination))].sort(byName);
    const { packets, family } = first;
    return [{ sources: sourcesOf(first), destinations, packets, ...(family === undefined ? {} : { family }) }];
  });
}

function keyOf(...parts: readonly (Group | string | number | undefined)[]): string {
  return JSON.stringify(parts.map((part) => (typeof part === "object" ? [part.kind, part.name] : part)));
}

function byName(left: Group, right: Group): number {
  return left.name < right.name ? -1 : 1;
}

/** All of a kind, or of a namespace, in one word. */
export function groupsText(groups: readonly Group[], all: readonly Group[]): string {
  const workloads = groups.filter(({ kind }) => kind === "workload");
  const others = groups.filter(({ kind }) => kind !== "workload").map(({ name }) => name);
  const everyWorkload = all.filter(({ kind }) => kind === "workload");
  if (workloads.length > 1 && workloads.length === everyWorkload.length) return ["all workloads", ...others].join(", ");
  const names = Array.from(
    Map.groupBy(workloads, ({ namespace }) => namespace),
    ([namespace, own]) => {
      const ofNamespace = everyWorkload.filter((each) => each.namespace === namespace);
      return own.length > 1 && own.length === ofNamespace.length ? [`${namespace}/*`] : own.map(({ name }) => name);
    },
  );
  return [...names.flat(), ...others].join(", ");
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
