/**
 * The orchestrator's own objects as records, for the controllers: policies and profiles as they are converted, pods and
 * nodes. Nothing here can be written but the statuses of ClusterNetworkPolicies, and nothing of this product need be installed
 * in the API.
 */
import { resourcesPrefix } from "../../model/keys.ts";
import { clusterNodes } from "./cluster-nodes.ts";
import { clusterPolicies, clusterPolicyStatuses } from "./cluster-policies.ts";
import { orchestratorPolicies } from "./derived-policies.ts";
import { derivedProfiles } from "./derived-profiles.ts";
import type { KindMapping } from "./kind-mapping.ts";
import { podRecords } from "./pod-records.ts";

export function orchestratorMapping(now: () => Date = () => new Date()): readonly KindMapping[] {
  return [
    // The first, of which the present revision is asked: every role allows to list nodes.
    clusterNodes,
    orchestratorPolicies(resourcesPrefix("networkpolicies")),
    clusterPolicies(resourcesPrefix("globalnetworkpolicies")),
    clusterPolicyStatuses(now),
    ...derivedProfiles,
    podRecords(),
  ];
}
