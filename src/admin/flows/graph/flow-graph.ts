/** Who talks to whom as a graph: nodes are groups of workloads, edges what they do with each other, each in a fixed order. Pure. */
import type { FlowRollup } from "../../../flows/flow-answer.ts";
import { groupPort, groupWords } from "../flow-words.ts";
import { type FlowSum, pairSums } from "../sums.ts";

export interface GraphNode {
  /** Unique: its place in the order of nodes. */
  readonly index: number;
  /** `undefined`: hosts, network sets, the outside. */
  readonly namespace?: string;
  /** Without the namespace. */
  readonly title: string;
  /** `Deployment`; absent if it says no more than the title. */
  readonly kind?: string;
}

export interface GraphEdge extends FlowSum {
  readonly from: GraphNode;
  readonly to: GraphNode;
  /** `5432/tcp` */
  readonly port: string;
  readonly verdict: Verdict;
}

export type Verdict = FlowRollup["verdict"];

export interface FlowGraph {
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly GraphEdge[];
}

export function flowGraph(rollups: readonly FlowRollup[]): FlowGraph {
  const pairs = pairSums(rollups);
  const groups = new Map(
    pairs.flatMap(({ source, destination }) => [source, destination]).map((group) => [keyOf(group), group]),
  );
  const nodes = [...groups.keys()].toSorted().map((key, index) => nodeOf(groups.get(key), index));
  const indexes = new Map([...groups.keys()].toSorted().map((key, index) => [key, index]));
  const find = (group: Group) => nodes[indexes.get(keyOf(group)) ?? -1];
  const edges = pairs.flatMap((pair): readonly GraphEdge[] => {
    const { source, destination, verdict, flows, packets, bytes } = pair;
    const [from, to] = [find(source), find(destination)];
    if (from === undefined || to === undefined) return [];
    return [{ from, to, port: groupPort(pair), verdict, flows, packets, bytes }];
  });
  return { nodes, edges: edges.toSorted(compareEdges) };
}

type Group = FlowRollup["source"];

/** Namespaces first, by their names. */
function keyOf({ kind, namespace, name, ownerKind }: Group): string {
  return JSON.stringify([namespace === undefined ? 1 : 0, namespace ?? "", name ?? "", kind, ownerKind ?? ""]);
}

function nodeOf(group: Group = { kind: "outside" }, index: number): GraphNode {
  const { namespace, name, ownerKind } = group;
  const title = namespace !== undefined && name !== undefined && group.kind !== "service" ? name : groupWords(group);
  return {
    index,
    ...(namespace === undefined ? {} : { namespace }),
    title,
    ...(ownerKind === undefined ? {} : { kind: ownerKind }),
  };
}

function compareEdges(left: GraphEdge, right: GraphEdge): number {
  const keys = [left, right].map(({ from, to, port, verdict }) =>
    [from.index, to.index]
      .map((index) => String(index).padStart(9, "0"))
      .concat(port, verdict)
      .join(" "),
  );
  const [first = "", second = ""] = keys;
  return first < second ? -1 : first === second ? 0 : 1;
}

/** `shop/web (Deployment)` */
export function nodeWords({ namespace, title, kind }: GraphNode): string {
  const name = namespace === undefined || title.startsWith("service/") ? title : `${namespace}/${title}`;
  return kind === undefined ? name : `${name} (${kind})`;
}
