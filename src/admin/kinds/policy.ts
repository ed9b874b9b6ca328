/** Policies and what they refer to: tiers, network sets, host endpoints; and the settings of the agent that enforces them. */
import type { GlobalNetworkPolicy } from "../../model/global-network-policy.ts";
import type { GlobalNetworkSet } from "../../model/global-network-set.ts";
import type { HostEndpoint } from "../../model/host-endpoint.ts";
import {
  GLOBAL_NETWORK_POLICY,
  GLOBAL_NETWORK_SET,
  HOST_ENDPOINT,
  NETWORK_POLICY,
  NETWORK_SET,
  NODE_AGENT_CONFIGURATION,
  STAGED_GLOBAL_NETWORK_POLICY,
  STAGED_KUBERNETES_NETWORK_POLICY,
  STAGED_NETWORK_POLICY,
  TIER,
} from "../../model/kinds.ts";
import type { NetworkPolicy } from "../../model/network-policy.ts";
import type { NetworkSet } from "../../model/network-set.ts";
import type { NodeAgentConfiguration } from "../../model/node-agent-configuration.ts";
import { typesOf } from "../../model/policy-spec.ts";
import type { Resource } from "../../model/resource.ts";
import type { StagedGlobalNetworkPolicy } from "../../model/staged-global-network-policy.ts";
import { convertStaged, type StagedKubernetesNetworkPolicy } from "../../model/staged-kubernetes-network-policy.ts";
import type { StagedNetworkPolicy } from "../../model/staged-network-policy.ts";
import type { Tier } from "../../model/tier.ts";
import { deleteTier } from "../delete/delete-tier.ts";
import { describeAppliedPolicies, describePolicy } from "../policy/describe-policies.ts";
import { describeInherited, LABELS_OF_MEMBERS } from "./inherited-labels.ts";
import { type AdminKind, type Column, formatLabels } from "./kind.ts";
import { checkPolicyReferences } from "./policy-references.ts";

const POLICY_COLUMNS: readonly Column<NetworkPolicy | GlobalNetworkPolicy>[] = [
  { header: "TIER", cell: ({ spec }) => spec.tier },
  { header: "ORDER", cell: ({ spec }) => `${spec.order ?? ""}` },
  { header: "SELECTOR", cell: ({ spec }) => spec.selector ?? "all()" },
  { header: "TYPES", cell: ({ spec }) => typesOf(spec).join(",") },
  { header: "INGRESS", cell: ({ spec }) => `${spec.ingress?.length ?? 0}`, isWide: true },
  { header: "EGRESS", cell: ({ spec }) => `${spec.egress?.length ?? 0}`, isWide: true },
];

const POLICY_LEAST_WANTED = ["TYPES", "ORDER", "TIER", "NAMESPACE"];

const REMEDY = (remove: string) =>
  `until it can be read, the endpoints that it may select are isolated; ${remove}, then apply it again`;

export const NETWORK_POLICY_ROW: AdminKind<NetworkPolicy> = {
  ...NETWORK_POLICY,
  columns: POLICY_COLUMNS,
  leastWanted: POLICY_LEAST_WANTED,
  describe: describePolicy,
  checkWrite: checkPolicyReferences,
  remedyIfUnreadable: REMEDY,
};

export const GLOBAL_NETWORK_POLICY_ROW: AdminKind<GlobalNetworkPolicy> = {
  ...GLOBAL_NETWORK_POLICY,
  columns: [
    ...POLICY_COLUMNS,
    { header: "NAMESPACES", cell: ({ spec }) => spec.namespaceSelector ?? "", isWide: true },
    { header: "HOSTS", cell: ({ spec }) => hostOptions(spec), isWide: true },
  ],
  leastWanted: POLICY_LEAST_WANTED,
  describe: describePolicy,
  checkWrite: checkPolicyReferences,
  remedyIfUnreadable: REMEDY,
};

const ACTION_COLUMN: Column<StagedNetworkPolicy | StagedGlobalNetworkPolicy | StagedKubernetesNetworkPolicy> = {
  header: "ACTION",
  cell: ({ spec }) => spec.stagedAction,
};

/** Of a deletion, what the enforced policy selects is not known here. */
const STAGED_COLUMNS: readonly Column<StagedNetworkPolicy | StagedGlobalNetworkPolicy>[] = [
  ACTION_COLUMN,
  { header: "TIER", cell: ({ spec }) => spec.tier },
  { header: "ORDER", cell: ({ spec }) => `${spec.order ?? ""}` },
  { header: "SELECTOR", cell: ({ spec }) => (spec.stagedAction === "Delete" ? "" : (spec.selector ?? "all()")) },
  { header: "TYPES", cell: ({ spec }) => (spec.stagedAction === "Delete" ? "" : typesOf(spec).join(",")) },
];

const STAGED_REMEDY = (remove: string) =>
  `until it can be read, nothing says what it would decide; ${remove}, then apply it again`;

export const STAGED_NETWORK_POLICY_ROW: AdminKind<StagedNetworkPolicy> = {
  ...STAGED_NETWORK_POLICY,
  columns: STAGED_COLUMNS,
  leastWanted: POLICY_LEAST_WANTED,
  checkWrite: checkPolicyReferences,
  remedyIfUnreadable: STAGED_REMEDY,
};

export const STAGED_GLOBAL_NETWORK_POLICY_ROW: AdminKind<StagedGlobalNetworkPolicy> = {
  ...STAGED_GLOBAL_NETWORK_POLICY,
  columns: STAGED_COLUMNS,
  leastWanted: POLICY_LEAST_WANTED,
  checkWrite: checkPolicyReferences,
  remedyIfUnreadable: STAGED_REMEDY,
};

export const STAGED_KUBERNETES_NETWORK_POLICY_ROW: AdminKind<StagedKubernetesNetworkPolicy> = {
  ...STAGED_KUBERNETES_NETWORK_POLICY,
  columns: [
    ACTION_COLUMN,
    {
      header: "TYPES",
      cell: ({ metadata, spec }) =>
        spec.stagedAction === "Delete" ? "" : typesOf(convertStaged({ metadata, spec }).spec).join(","),
    },
  ],
  remedyIfUnreadable: STAGED_REMEDY,
};

function hostOptions(spec: GlobalNetworkPolicy["spec"]): string {
  return (["applyOnForward", "preDNAT", "doNotTrack"] as const).filter((option) => spec[option]).join(",");
}

const SET_COLUMNS: readonly Column<NetworkSet | GlobalNetworkSet>[] = [
  labelsColumn(),
  { header: "NETS", cell: ({ spec }) => spec.nets.join(",") },
];

export const NETWORK_SET_ROW: AdminKind<NetworkSet> = {
  ...NETWORK_SET,
  columns: SET_COLUMNS,
  inheritedLabels: LABELS_OF_MEMBERS,
};

export const GLOBAL_NETWORK_SET_ROW: AdminKind<GlobalNetworkSet> = { ...GLOBAL_NETWORK_SET, columns: SET_COLUMNS };

export const TIER_ROW: AdminKind<Tier> = {
  ...TIER,
  columns: [
    { header: "ORDER", cell: ({ spec }) => `${spec.order ?? ""}` },
    { header: "DEFAULT ACTION", cell: ({ spec }) => spec.defaultAction },
  ],
  deleteResource: deleteTier,
};

export const HOST_ENDPOINT_ROW: AdminKind<HostEndpoint> = {
  ...HOST_ENDPOINT,
  describe: async (store, endpoint) => [
    ...(await describeAppliedPolicies(store, endpoint)),
    ...(await describeInherited(store, endpoint)),
  ],
  inheritedLabels: LABELS_OF_MEMBERS,
  columns: [
    { header: "NODE", cell: ({ spec }) => spec.node ?? "" },
    { header: "INTERFACE", cell: ({ spec }) => spec.interfaceName ?? "" },
    { header: "ADDRESSES", alias: "IPS", cell: ({ spec }) => (spec.expectedIPs ?? []).join(",") },
    { header: "PROFILES", cell: ({ spec }) => (spec.profiles ?? []).join(","), isWide: true },
    { ...labelsColumn(), isWide: true },
  ],
};

export const NODE_AGENT_CONFIGURATION_ROW: AdminKind<NodeAgentConfiguration> = {
  ...NODE_AGENT_CONFIGURATION,
  columns: [{ header: "SETTINGS", cell: ({ spec }) => Object.keys(spec).join(",") }],
};

function labelsColumn(): Column<Resource> {
  return { header: "LABELS", cell: ({ metadata }) => formatLabels(metadata.labels ?? {}) };
}
