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
  /** Without prefix lengths. */
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
}

export type ClusterJudgement =
  | { readonly kind: "same" }
  /** No UID is recorded, and the nodes coincide. */
  | { readonly kind: "new" }
  | { readonly kind: "other"; readonly reason: string };

export function judgeCluster({ recorded, uid, records, nodes }: ComparedCluster): ClusterJudgement {
  if (recorded !== undefined) {
    if (recorded === uid) return { kind: "same" };
    return { kind: "other", reason: `it is that of cluster ${quoted(recorded)}, and this is ${quoted(uid ?? "")}` };
  }
  if (records.length === 0) return { kind: "new" };
  const coinciding = coincidingNodes(records, nodes).length;
  if (coinciding > 0 && coinciding * 2 >= Math.min(records.length, nodes.length)) return { kind: "new" };
  const [example] = records;
  return {
    kind: "other",
    reason: `of its ${records.length} nodes, such as ${quoted(example?.name ?? "")}, the cluster has ${coinciding}`,
  };
}

/**
 * Records of nodes that the cluster has. Another cluster may have nodes of the same names: a node is another one if its
 * machine is, unless both have an address in common (a kubelet may see another machine ID than the agent).
 */
export function coincidingNodes(records: readonly KnownNode[], nodes: readonly KnownNode[]): readonly KnownNode[] {
  const byName = new Map(nodes.map((node) => [node.name, node]));
  return records.filter((record) => {
    const node = byName.get(record.name);
    if (node === undefined) return false;
    const isUnknown = record.machine === undefined || node.machine === undefined;
    return (
      isUnknown || record.machine === node.machine || node.addresses.some((each) => record.addresses.includes(each))
    );
  });
}

/** How an administrator confirms that a datastore has moved to another cluster. */
export const ADOPT_COMMAND = `${identity.adminTool} datastore adopt-cluster`;
