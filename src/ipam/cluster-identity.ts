/**
 * Whether a datastore belongs to a cluster of the orchestrator. Whoever compares its records with the pods and nodes of
 * another cluster would find everything unused, and delete it.
 *
 *   ClusterInformation has the UID of the namespace kube-system ──> it is that of the cluster, or another cluster
 *   it has none (a former release, a new datastore) ─────────────> the nodes decide, and the UID is recorded
 *
 * Pure.
 */
import { identity } from "../identity.ts";
import { quoted } from "../quote.ts";

/** A node as one of the two sides knows it, under the orchestrator's name. */
export interface KnownNode {
  readonly name: string;
  /** Hash of its machine ID. */
  readonly machine?: string | undefined;
  /** Without prefix lengths, and without names. */
  readonly addresses: readonly string[];
}

export interface ComparedCluster {
  /** In ClusterInformation. */
  readonly recorded: string | undefined;
  /** Of the cluster; `undefined` if it has no such namespace. */
  readonly uid: string | undefined;
  /** Of the datastore. */
  readonly records: readonly KnownNode[];
  /** Of the cluster. */
  readonly nodes: readonly KnownNode[];
  /**
   * "machine or address": the datastore is a server of its own (etcd), and clusters with nodes of the same names are common.
   * "name": it is the API of the cluster itself, and its records know no more of a node than the name.
   */
  readonly proof: "machine or address" | "name";
}

export type ClusterJudgement =
  | { readonly kind: "same" }
  /** No UID is recorded, and the nodes coincide. */
  | { readonly kind: "new" }
  | { readonly kind: "other"; readonly reason: string };

export function judgeCluster({ recorded, uid, ...compared }: ComparedCluster): ClusterJudgement {
  if (recorded !== undefined) {
    if (recorded === uid) return { kind: "same" };
    return { kind: "other", reason: `it is that of cluster ${quoted(recorded)}, and this is ${quoted(uid ?? "")}` };
  }
  const { records, nodes, proof } = compared;
  if (records.length === 0) return { kind: "new" };
  const { proven, named } = compareNodes(compared);
  const coinciding = proven.length + (proof === "name" ? named.length : 0);
  if (coinciding > 0 && coinciding * 2 >= Math.min(records.length, nodes.length)) return { kind: "new" };
  const [example] = named.length > 0 ? named : records;
  const title = `of its ${records.length} nodes, such as ${quoted(example?.name ?? "")}, the cluster has ${coinciding}`;
  if (named.length === 0 || proof === "name") return { kind: "other", reason: title };
  return {
    kind: "other",
    reason: `${title}; ${named.length} more have the name, but no known machine or address in common`,
  };
}

export interface ComparedNodes {
  /** Records of nodes that the cluster has: on the same machine, or with an address in common. */
  readonly proven: readonly KnownNode[];
  /** Only the name is the same, and too little is known to say more. */
  readonly named: readonly KnownNode[];
}

/**
 * Another cluster may have nodes of the same names. A kubelet may see another machine ID than the agent, so an address in
 * common proves a node, too. What several nodes of one side have proves nothing: the machine ID of copies of one image, or
 * the address that a hypervisor gives to each of its guests. Of a single node nobody can tell whether others have its
 * address as well, so it proves nothing against a machine ID.
 */
export function compareNodes({ records, nodes }: Pick<ComparedCluster, "records" | "nodes">): ComparedNodes {
  const byName = new Map(nodes.map((node) => [node.name, node]));
  const machinesOf = ({ machine }: KnownNode) => (machine === undefined ? [] : [machine]);
  const machines = sharedBy(records, machinesOf).union(sharedBy(nodes, machinesOf));
  const addressesOf = ({ addresses }: KnownNode) => addresses;
  const addresses = sharedBy(records, addressesOf).union(sharedBy(nodes, addressesOf));
  const shared = { machines, addresses, isSingle: Math.min(records.length, nodes.length) === 1 };
  const pairs = records.flatMap((record) => {
    const node = byName.get(record.name);
    return node === undefined ? [] : [{ record, likeness: likenessOf(record, node, shared) }];
  });
  const those = (likeness: Likeness) => pairs.filter((pair) => pair.likeness === likeness).map(({ record }) => record);
  return { proven: those("proven"), named: those("unknown") };
}

type Likeness = "proven" | "unknown" | "different";

interface Shared {
  /** Of several nodes of one side. */
  readonly machines: ReadonlySet<string>;
  readonly addresses: ReadonlySet<string>;
  /** One of the sides has a single node. */
  readonly isSingle: boolean;
}

function likenessOf(record: KnownNode, node: KnownNode, { machines, addresses, isSingle }: Shared): Likeness {
  const recorded = new Set(record.addresses).difference(addresses);
  const reported = new Set(node.addresses).difference(addresses);
  const isOnOther = record.machine !== undefined && node.machine !== undefined && record.machine !== node.machine;
  if (isOnOther && isSingle) return "different";
  if (!recorded.isDisjointFrom(reported)) return "proven";
  if (isOnOther) return "different";
  if (record.machine !== undefined && record.machine === node.machine && !machines.has(record.machine)) return "proven";
  return recorded.size > 0 && reported.size > 0 ? "different" : "unknown";
}

function sharedBy(
  nodes: readonly KnownNode[],
  featuresOf: (node: KnownNode) => readonly string[],
): ReadonlySet<string> {
  const byFeature = Map.groupBy(
    nodes.flatMap((node) => [...new Set(featuresOf(node))]),
    (each) => each,
  );
  return new Set([...byFeature].filter(([, those]) => those.length > 1).map(([each]) => each));
}

/** How an administrator confirms that a datastore has moved to another cluster. */
export const ADOPT_COMMAND = `${identity.adminTool} datastore adopt-cluster`;
