/** The kinds that policy is computed from, as a replica follows them. */
import { type KindTable, sourceOf } from "../datastore/replica/kinds.ts";
import type { RecordChange } from "../datastore/replica/subscription.ts";
import type { Update } from "../datastore/replica.ts";
import type { ContainerLabels } from "../model/container-labels.ts";
import type { GlobalNetworkPolicy } from "../model/global-network-policy.ts";
import type { GlobalNetworkSet } from "../model/global-network-set.ts";
import type { HostEndpoint } from "../model/host-endpoint.ts";
import type { IPPool } from "../model/ip-pool.ts";
import {
  CONTAINER_LABELS,
  ENDPOINT,
  GLOBAL_NETWORK_POLICY,
  GLOBAL_NETWORK_SET,
  HOST_ENDPOINT,
  NETWORK_POLICY,
  NETWORK_SET,
  NODE_AGENT_CONFIGURATION,
  PROFILE,
  STAGED_GLOBAL_NETWORK_POLICY,
  STAGED_KUBERNETES_NETWORK_POLICY,
  STAGED_NETWORK_POLICY,
  TIER,
} from "../model/kinds.ts";
import type { NetworkPolicy } from "../model/network-policy.ts";
import type { NetworkSet } from "../model/network-set.ts";
import type { Node } from "../model/node.ts";
import type { NodeAgentConfiguration } from "../model/node-agent-configuration.ts";
import type { Profile } from "../model/profile.ts";
import { readServiceEndpoints, SERVICE_ENDPOINTS_PREFIX, type ServiceEndpoints } from "../model/service-endpoints.ts";
import type { StagedGlobalNetworkPolicy } from "../model/staged-global-network-policy.ts";
import type { StagedKubernetesNetworkPolicy } from "../model/staged-kubernetes-network-policy.ts";
import type { StagedNetworkPolicy } from "../model/staged-network-policy.ts";
import type { Tier } from "../model/tier.ts";
import type { WorkloadEndpoint } from "../model/workload-endpoint.ts";

export interface PolicyValues {
  readonly endpoints: WorkloadEndpoint;
  /** Of containers: the orchestrator's API has only pods. */
  readonly containerLabels: ContainerLabels;
  readonly hostEndpoints: HostEndpoint;
  readonly profiles: Profile;
  readonly networkPolicies: NetworkPolicy;
  readonly globalNetworkPolicies: GlobalNetworkPolicy;
  readonly networkSets: NetworkSet;
  readonly globalNetworkSets: GlobalNetworkSet;
  readonly tiers: Tier;
  readonly configurations: NodeAgentConfiguration;
  /** Only the orchestrator's API has any. */
  readonly serviceEndpoints: ServiceEndpoints;
}

/** Nothing that enforces policy reads them. */
export interface StagedValues {
  readonly stagedNetworkPolicies: StagedNetworkPolicy;
  readonly stagedGlobalNetworkPolicies: StagedGlobalNetworkPolicy;
  readonly stagedKubernetesNetworkPolicies: StagedKubernetesNetworkPolicy;
}

export const STAGED_KINDS: KindTable<StagedValues> = {
  stagedNetworkPolicies: sourceOf(STAGED_NETWORK_POLICY),
  stagedGlobalNetworkPolicies: sourceOf(STAGED_GLOBAL_NETWORK_POLICY),
  stagedKubernetesNetworkPolicies: sourceOf(STAGED_KUBERNETES_NETWORK_POLICY),
};

/** What changed of each kind, in no particular order. */
export type PolicyChanges = Update<PolicyValues>["changes"] & {
  /** Routing follows them. The tunnels that they need are not cut. */
  readonly pools?: readonly RecordChange<IPPool>[];
  readonly nodes?: readonly RecordChange<Node>[];
};

export interface PolicyUpdate {
  readonly snapshot: Update<PolicyValues>["snapshot"] & Partial<Update<{ readonly nodes: Node }>["snapshot"]>;
  readonly changes: PolicyChanges;
}

export const POLICY_KINDS: KindTable<PolicyValues> = {
  endpoints: sourceOf(ENDPOINT),
  containerLabels: sourceOf(CONTAINER_LABELS),
  hostEndpoints: sourceOf(HOST_ENDPOINT),
  profiles: sourceOf(PROFILE),
  networkPolicies: sourceOf(NETWORK_POLICY),
  globalNetworkPolicies: sourceOf(GLOBAL_NETWORK_POLICY),
  networkSets: sourceOf(NETWORK_SET),
  globalNetworkSets: sourceOf(GLOBAL_NETWORK_SET),
  tiers: sourceOf(TIER),
  configurations: sourceOf(NODE_AGENT_CONFIGURATION),
  serviceEndpoints: {
    prefix: SERVICE_ENDPOINTS_PREFIX,
    decode: ({ key, value }) => readServiceEndpoints(value, key),
  },
};
