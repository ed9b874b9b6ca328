/** Everything that policy depends on, as plain lists: what the judge reads. */
import type { ContainerLabels } from "../../model/container-labels.ts";
import type { GlobalNetworkPolicy } from "../../model/global-network-policy.ts";
import type { GlobalNetworkSet } from "../../model/global-network-set.ts";
import type { HostEndpoint } from "../../model/host-endpoint.ts";
import type { NetworkPolicy } from "../../model/network-policy.ts";
import type { NetworkSet } from "../../model/network-set.ts";
import type { Node } from "../../model/node.ts";
import type { Profile } from "../../model/profile.ts";
import type { ServiceEndpoints } from "../../model/service-endpoints.ts";
import type { Tier } from "../../model/tier.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import type { PolicyLimits } from "../policy-size.ts";

export interface PolicyResources {
  readonly endpoints: readonly WorkloadEndpoint[];
  readonly containerLabels: readonly ContainerLabels[];
  readonly hostEndpoints: readonly HostEndpoint[];
  readonly profiles: readonly Profile[];
  readonly networkPolicies: readonly NetworkPolicy[];
  readonly globalNetworkPolicies: readonly GlobalNetworkPolicy[];
  readonly networkSets: readonly NetworkSet[];
  readonly globalNetworkSets: readonly GlobalNetworkSet[];
  readonly tiers: readonly Tier[];
  /** Rules of ClusterNetworkPolicies select them; none if absent. */
  readonly nodes?: readonly Node[];
  /** Absent if the datastore does not contain services. */
  readonly serviceEndpoints?: readonly ServiceEndpoints[];
  /** The default ones if absent. */
  readonly policyLimits?: PolicyLimits;
}

export type AnyPolicy = NetworkPolicy | GlobalNetworkPolicy;
export type AnyEndpoint = WorkloadEndpoint | HostEndpoint;
/** What a selector of a rule can select. */
export type AnyMember = AnyEndpoint | NetworkSet | GlobalNetworkSet | Node;
