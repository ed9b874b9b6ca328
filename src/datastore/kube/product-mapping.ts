/** Every kind of record of this product, as it is stored in the orchestrator's API. */
import { identity } from "../../identity.ts";
import { absentContainerLabels } from "./absent-container-labels.ts";
import { clusterNodes } from "./cluster-nodes.ts";
import { withClusterPolicies } from "./cluster-policies.ts";
import { customObjects } from "./custom-objects.ts";
import { withDerivedPolicies } from "./derived-policies.ts";
import { derivedProfiles } from "./derived-profiles.ts";
import { derivedServiceEndpoints } from "./derived-service-endpoints.ts";
import { IPAM_KINDS } from "./ipam-kinds.ts";
import type { KindMapping } from "./kind-mapping.ts";
import { podEndpoints } from "./pod-endpoints.ts";
import { poolProtection } from "./pool-protection.ts";
import { resourceKind } from "./resource-kinds.ts";

/** The last write of an object: tells whose write took effect if a response was lost. */
const WRITE_ANNOTATION = `${identity.labelPrefix}write`;

export function productMapping(newMark: () => string): readonly KindMapping[] {
  const means = { writeAnnotation: WRITE_ANNOTATION, newMark };
  const resources = [
    resourceKind("clusterinformations", "ClusterInformation", means),
    resourceKind("ippools", "IPPool", { ...means, traits: { protection: poolProtection }, withGeneration: true }),
    resourceKind("ipreservations", "IPReservation", means),
    resourceKind("ipaddresslists", "IPAddressList", means),
    resourceKind("stagednetworkpolicies", "StagedNetworkPolicy", { ...means, namespaced: true }),
    resourceKind("stagedglobalnetworkpolicies", "StagedGlobalNetworkPolicy", means),
    resourceKind("stagedkubernetesnetworkpolicies", "StagedKubernetesNetworkPolicy", { ...means, namespaced: true }),
    resourceKind("networksets", "NetworkSet", { ...means, namespaced: true }),
    resourceKind("globalnetworksets", "GlobalNetworkSet", means),
    resourceKind("tiers", "Tier", means),
    resourceKind("hostendpoints", "HostEndpoint", means),
    resourceKind("nodeagentconfigurations", "NodeAgentConfiguration", means),
    resourceKind("kubecontrollersconfigurations", "KubeControllersConfiguration", means),
    resourceKind("bgpconfigurations", "BGPConfiguration", means),
    resourceKind("bgppeers", "BGPPeer", means),
    resourceKind("bgpfilters", "BGPFilter", means),
  ];
  return [
    ...[...resources, ...IPAM_KINDS].map((kind) => customObjects(kind, means)),
    withDerivedPolicies(
      customObjects(resourceKind("networkpolicies", "NetworkPolicy", { ...means, namespaced: true }), means),
    ),
    withClusterPolicies(customObjects(resourceKind("globalnetworkpolicies", "GlobalNetworkPolicy", means), means)),
    derivedServiceEndpoints,
    clusterNodes,
    podEndpoints,
    ...derivedProfiles,
    absentContainerLabels,
  ];
}
