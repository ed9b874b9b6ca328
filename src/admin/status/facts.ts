/** What is installed in a cluster and how it is doing, as `status` finds it. */

import type { Node } from "../../model/node.ts";
import type { NodeVersion } from "../../upkeep/node-versions.ts";
import type { ClusterNode } from "../cluster/nodes.ts";

export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
}

/** A Deployment or DaemonSet. */
export interface Workload {
  readonly name: string;
  readonly namespace: string;
  /** Of its pods: `k8s-app=vendor-node` */
  readonly selector: string;
  readonly image: string;
  readonly desired: number;
  readonly ready: number;
  readonly updated: number;
}

export interface AgentPod {
  readonly name: string;
  readonly namespace: string;
  readonly node: string;
  readonly image: string;
  readonly isReady: boolean;
  readonly restarts: number;
  /** Why it is not ready. */
  readonly reason: string;
}

export interface PoolState {
  readonly name: string;
  readonly cidr: string;
  readonly disabled: boolean;
  readonly size: bigint;
  readonly used: bigint;
  readonly free: bigint;
}

/** What the datastore has; `problem` if it could not be read. */
export interface DatastoreState {
  readonly kind: string;
  readonly pools: readonly PoolState[];
  readonly agents: readonly NodeVersion[];
  /** Those that can be read; absent if the datastore could not be. */
  readonly nodes?: readonly Node[];
  readonly clusterVersion?: string;
  readonly problem?: string;
}

/** What somebody with few rights may not see. Nothing is said of it: it may exist. */
export type StatusPart = "installation" | "operator" | "agents" | "agent pods" | "controllers" | "nodes" | "pools";

export interface StatusFacts {
  readonly toolVersion: string;
  /** Absent: everything was seen. */
  readonly unseen?: ReadonlySet<StatusPart>;
  /** Of the Installation `default`; absent if there is none. */
  readonly installation?: { readonly conditions: readonly Condition[] };
  /** Of the components that the operator reports. */
  readonly components: ReadonlyMap<string, readonly Condition[]>;
  readonly operator?: Workload;
  readonly agents?: Workload;
  readonly controllers?: Workload;
  /** Absent: it is switched off. */
  readonly console?: Workload;
  readonly nodes: readonly ClusterNode[];
  readonly agentPods: readonly AgentPod[];
  readonly datastore: DatastoreState;
}
