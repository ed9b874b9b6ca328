/** The records that the benchmark of scale writes: the whole cluster, and those that concern the measured node. */
import {
  applicationOf,
  type ClusterSize,
  peerOf,
  podRecord,
  policyRecord,
  recordsOfNode,
  type StoredRecord,
  sharedRecords,
} from "../../sim/scale/cluster-records.ts";
import type { ScaleEtcd } from "./scale-etcd.ts";
import { OWN } from "./scale-node.ts";

const NODES_AT_ONCE = 100;

export interface Written {
  readonly count: number;
  readonly bytes: number;
}

export async function writeCluster(etcd: ScaleEtcd, size: ClusterSize): Promise<Written> {
  let [count, bytes] = [0, 0];
  const write = async (records: readonly StoredRecord[]) => {
    count += records.length;
    bytes += records.reduce((sum, { key, value }) => sum + key.length + value.length, 0);
    await etcd.write(records);
  };
  await write(sharedRecords(size));
  for (let node = 0; node < size.nodes; node += NODES_AT_ONCE) {
    const some = Array.from({ length: Math.min(NODES_AT_ONCE, size.nodes - node) }, (_, index) => node + index);
    await write(some.flatMap((each) => recordsOfNode(each, size)));
  }
  return { count, bytes };
}

/** Its own pods, their policies, and the pods that these allow. */
export function concerning(size: ClusterSize): readonly StoredRecord[] {
  const own = Array.from({ length: size.podsPerNode }, (_, pod) => applicationOf(OWN, pod, size));
  const wanted = new Set(own.flatMap((application) => [application, peerOf(application, size)]));
  const pods: StoredRecord[] = [];
  for (let node = 0; node < size.nodes; node++) {
    for (let pod = 0; pod < size.podsPerNode; pod++) {
      const application = applicationOf(node, pod, size);
      if (wanted.has(application)) pods.push(podRecord(node, pod, application));
    }
  }
  return [...sharedRecords({ policies: 0 }), ...own.map((application) => policyRecord(application, size)), ...pods];
}

/** A pod of an application that may connect to a local one. */
export function newPeer(node: number, size: ClusterSize): StoredRecord {
  const local = applicationOf(OWN, node % size.podsPerNode, size);
  return podRecord(node, 0, peerOf(local, size));
}

/** Pods that neither a local pod nor its policies have to do with. */
export function unrelatedPods(first: number, count: number, size: ClusterSize): readonly StoredRecord[] {
  const application = applicationOf(OWN, size.podsPerNode, size);
  return Array.from({ length: count }, (_, index) => podRecord(first + index, 0, application));
}
