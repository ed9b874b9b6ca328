/**
 * What the controllers compute from: the orchestrator's objects and the records of the datastore, each as a replica
 * follows it. Kinds that no enabled controller needs are not followed, and are empty.
 */
import { KindSnapshot } from "../datastore/replica/kind-snapshot.ts";
import { type KindTable, sourceOf } from "../datastore/replica/kinds.ts";
import type { RecordChange } from "../datastore/replica/subscription.ts";
import type { Replica, ReplicaSnapshot } from "../datastore/replica.ts";
import { type BlockClaim, borrowingOf, claimOf } from "../ipam/leaks/cluster-records.ts";
import type { Pool } from "../ipam/pools.ts";
import { decodeBlock, decodePool } from "../ipam/records.ts";
import {
  CLUSTER_POLICY_STATUSES_PREFIX,
  type ClusterPolicyStatus,
  readClusterPolicyStatus,
} from "../model/cluster-policy-status.ts";
import type { GlobalNetworkPolicy } from "../model/global-network-policy.ts";
import type { HostEndpoint } from "../model/host-endpoint.ts";
import type { IPAMBlock } from "../model/ipam-block.ts";
import { ALL_AFFINITIES_PREFIX, ALL_BORROWED_PREFIX, blocksPrefix } from "../model/keys.ts";
import {
  ENDPOINT,
  GLOBAL_NETWORK_POLICY,
  HOST_ENDPOINT,
  KUBE_CONTROLLERS_CONFIGURATION,
  NETWORK_POLICY,
  NODE,
  POOL,
  PROFILE,
} from "../model/kinds.ts";
import type { KubeControllersConfiguration } from "../model/kube-controllers-configuration.ts";
import type { NetworkPolicy } from "../model/network-policy.ts";
import type { Node } from "../model/node.ts";
import { POD_RECORDS_PREFIX, type PodRecord, readPodRecord } from "../model/pod-record.ts";
import type { Profile } from "../model/profile.ts";
import type { WorkloadEndpoint } from "../model/workload-endpoint.ts";

/** The orchestrator's objects, converted (datastore/kube/orchestrator-mapping.ts). */
export interface OrchestratorValues {
  readonly policies: NetworkPolicy;
  readonly clusterPolicies: GlobalNetworkPolicy;
  readonly clusterPolicyStatuses: ClusterPolicyStatus;
  readonly profiles: Profile;
  readonly pods: PodRecord;
  readonly nodes: Node;
}

/** Records of the product's datastore. */
export interface StoredValues {
  readonly policies: NetworkPolicy;
  readonly clusterPolicies: GlobalNetworkPolicy;
  readonly profiles: Profile;
  readonly endpoints: WorkloadEndpoint;
  readonly nodes: Node;
  readonly hostEndpoints: HostEndpoint;
  readonly configurations: KubeControllersConfiguration;
  readonly pools: Pool;
  readonly blocks4: IPAMBlock;
  readonly blocks6: IPAMBlock;
  readonly claims: BlockClaim;
  readonly borrowings: BlockClaim;
}

export type OrchestratorKind = keyof OrchestratorValues;
export type StoredKind = keyof StoredValues;

export interface Facts {
  readonly orchestrator: ReplicaSnapshot<OrchestratorValues>;
  readonly stored: ReplicaSnapshot<StoredValues>;
}

type Changes<Values> = { readonly [Kind in keyof Values]?: readonly RecordChange<Values[Kind]>[] };

/** What changed, of one of the two sides at a time. */
export interface FactsUpdate {
  readonly orchestrator: Changes<OrchestratorValues>;
  readonly stored: Changes<StoredValues>;
}

export interface Replicas {
  readonly orchestrator: Replica<OrchestratorValues>;
  readonly stored: Replica<StoredValues>;
}

/** `undefined` until everything has been listed once. */
export function factsOf({ orchestrator, stored }: Replicas): Facts | undefined {
  const [objects, records] = [orchestrator.snapshot, stored.snapshot];
  if (objects === undefined || records === undefined) return undefined;
  return { orchestrator: { ...NO_OBJECTS, ...objects }, stored: { ...NO_RECORDS, ...records } };
}

export const ORCHESTRATOR_KINDS: KindTable<OrchestratorValues> = {
  policies: sourceOf(NETWORK_POLICY),
  clusterPolicies: sourceOf(GLOBAL_NETWORK_POLICY),
  clusterPolicyStatuses: {
    prefix: CLUSTER_POLICY_STATUSES_PREFIX,
    decode: ({ key, value }) => readClusterPolicyStatus(value, key),
  },
  profiles: sourceOf(PROFILE),
  pods: { prefix: POD_RECORDS_PREFIX, decode: ({ key, value }) => readPodRecord(value, key) },
  nodes: sourceOf(NODE),
};

export const STORED_KINDS: KindTable<StoredValues> = {
  policies: sourceOf(NETWORK_POLICY),
  clusterPolicies: sourceOf(GLOBAL_NETWORK_POLICY),
  profiles: sourceOf(PROFILE),
  endpoints: sourceOf(ENDPOINT),
  nodes: sourceOf(NODE),
  hostEndpoints: sourceOf(HOST_ENDPOINT),
  configurations: sourceOf(KUBE_CONTROLLERS_CONFIGURATION),
  pools: { prefix: POOL.prefix(), decode: decodePool },
  blocks4: { prefix: blocksPrefix(4), decode: decodeBlock },
  blocks6: { prefix: blocksPrefix(6), decode: decodeBlock },
  claims: { prefix: ALL_AFFINITIES_PREFIX, decode: claimOf },
  borrowings: { prefix: ALL_BORROWED_PREFIX, decode: borrowingOf },
};

/** The rows of the kinds that are followed: a replica of them has the others neither in its snapshots nor in its changes. */
export function followedKinds<Values>(
  table: KindTable<Values>,
  followed: ReadonlySet<keyof Values>,
): KindTable<Values> {
  const rows = Object.entries(table).filter(([kind]) => followed.has(kind as keyof Values));
  return Object.fromEntries(rows) as KindTable<Values>;
}

/** What a replica has of the kinds that it does not follow. */
const NO_OBJECTS = emptySnapshots(ORCHESTRATOR_KINDS);
const NO_RECORDS = emptySnapshots(STORED_KINDS);

function emptySnapshots<Values>(table: KindTable<Values>): ReplicaSnapshot<Values> {
  const rows = Object.keys(table).map((kind) => [kind, KindSnapshot.empty()] as const);
  return Object.fromEntries(rows) as ReplicaSnapshot<Values>;
}
