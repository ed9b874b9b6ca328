/** The admin tool's table of kinds: one row for each public kind of the model. */
import { identity } from "../../identity.ts";
import { type ClusterInformation, clusterVersion } from "../../model/cluster-information.ts";
import type { IPAddressList } from "../../model/ip-address-list.ts";
import type { IPReservation } from "../../model/ip-reservation.ts";
import type { IPAMConfiguration } from "../../model/ipam-configuration.ts";
import {
  ADDRESS_LIST,
  CLUSTER_INFORMATION,
  ENDPOINT,
  IPAM_CONFIGURATION,
  KUBE_CONTROLLERS_CONFIGURATION,
  NODE,
  RESERVATION,
} from "../../model/kinds.ts";
import type { KubeControllersConfiguration } from "../../model/kube-controllers-configuration.ts";
import type { Node } from "../../model/node.ts";
import type { WorkloadEndpoint } from "../../model/workload-endpoint.ts";
import { releaseNode } from "../delete/delete-node.ts";
import { usersOfEndpoint, usersOfNode } from "../delete/uses.ts";
import { noteOfList } from "../ipam/address-lists.ts";
import { describeEndpoint, describeNode } from "../ipam/describe.ts";
import { describeAddressList } from "../ipam/describe-list.ts";
import { BGP_CONFIGURATION_ROW, BGP_FILTER_ROW, BGP_PEER_ROW } from "./bgp.ts";
import { CONTAINER_LABELS_ROW, noteOfLabelsLeft } from "./container-labels.ts";
import { describeInherited, LABELS_OF_MEMBERS } from "./inherited-labels.ts";
import type { AdminKind } from "./kind.ts";
import {
  GLOBAL_NETWORK_POLICY_ROW,
  GLOBAL_NETWORK_SET_ROW,
  HOST_ENDPOINT_ROW,
  NETWORK_POLICY_ROW,
  NETWORK_SET_ROW,
  NODE_AGENT_CONFIGURATION_ROW,
  STAGED_GLOBAL_NETWORK_POLICY_ROW,
  STAGED_KUBERNETES_NETWORK_POLICY_ROW,
  STAGED_NETWORK_POLICY_ROW,
  TIER_ROW,
} from "./policy.ts";
import { POOL_ROW } from "./pool.ts";
import { PROFILE_ROW } from "./profile.ts";
import { workloadNames } from "./workload-names.ts";

const KUBE_CONTROLLERS_CONFIGURATION_ROW: AdminKind<KubeControllersConfiguration> = {
  ...KUBE_CONTROLLERS_CONFIGURATION,
  columns: [{ header: "CONTROLLERS", cell: ({ spec }) => Object.keys(spec.controllers ?? {}).join(",") || "all" }],
};

const RESERVATION_ROW: AdminKind<IPReservation> = {
  ...RESERVATION,
  columns: [{ header: "RESERVED", alias: "CIDRS", cell: ({ spec }) => spec.reservedCIDRs.join(",") }],
};

const ADDRESS_LIST_ROW: AdminKind<IPAddressList> = {
  ...ADDRESS_LIST,
  columns: [
    { header: "ADDRESSES", cell: ({ spec }) => `${spec.addresses.length}` },
    { header: "FIRST", cell: ({ spec }) => spec.addresses[0] ?? "" },
    { header: "NAMESPACES", cell: ({ spec }) => spec.namespaceSelector },
  ],
  describe: describeAddressList,
  noteOnceWritten: noteOfList,
};

const IPAM_CONFIGURATION_ROW: AdminKind<IPAMConfiguration> = {
  ...IPAM_CONFIGURATION,
  columns: [
    { header: "STRICT AFFINITY", cell: ({ spec }) => `${spec.strictAffinity}` },
    { header: "AUTO ALLOCATE", cell: ({ spec }) => `${spec.autoAllocateBlocks}` },
    { header: "MAX BLOCKS PER HOST", cell: ({ spec }) => `${spec.maxBlocksPerHost || "default"}` },
    { header: "COOLDOWN", cell: ({ spec }) => `${spec.cooldownSeconds ?? 0}`, isWide: true },
  ],
};

const CLUSTER_INFORMATION_ROW: AdminKind<ClusterInformation> = {
  ...CLUSTER_INFORMATION,
  columns: [
    { header: "CLUSTER GUID", cell: ({ spec }) => spec.clusterGUID ?? "" },
    { header: "TYPE", alias: "CLUSTERTYPE", cell: ({ spec }) => spec.clusterType ?? "" },
    { header: "VERSION", cell: (information) => clusterVersion(information) ?? "" },
    { header: "READY", alias: "DATASTOREREADY", cell: ({ spec }) => `${spec.datastoreReady ?? "unknown"}` },
  ],
  remedyIfUnreadable: (remove) =>
    `${remove}, then initialize the datastore with "${identity.adminTool} datastore init"`,
};

const NODE_ROW: AdminKind<Node> = {
  ...NODE,
  columns: [
    { header: "ASN", cell: ({ spec }) => `${spec.bgp?.asNumber ?? ""}`, isWide: true },
    { header: "IPV4", cell: ({ spec }) => spec.bgp?.ipv4Address ?? "" },
    { header: "IPV6", cell: ({ spec }) => spec.bgp?.ipv6Address ?? "" },
  ],
  describe: describeNode,
  usersOf: usersOfNode,
  remedyIfInUse: "end its workloads first, or use --force: their addresses stay allocated, in blocks without a node",
  afterDelete: releaseNode,
  noteOfRest: noteOfLabelsLeft,
};

const ENDPOINT_ROW: AdminKind<WorkloadEndpoint> = {
  ...ENDPOINT,
  columns: [
    { header: "WORKLOAD", cell: ({ spec }) => spec.pod ?? spec.workload ?? spec.containerID ?? "" },
    { header: "NODE", cell: ({ spec }) => spec.node ?? "" },
    { header: "NETWORKS", cell: ({ spec }) => (spec.ipNetworks ?? []).join(",") },
    { header: "INTERFACE", cell: ({ spec }) => spec.interfaceName ?? "" },
    { header: "PROFILES", cell: ({ spec }) => (spec.profiles ?? []).join(","), isWide: true },
    { header: "MAC", cell: ({ spec }) => spec.mac ?? "", isWide: true },
  ],
  // The workload names it for people.
  leastWanted: ["NAME", "INTERFACE", "NODE", "NAMESPACE"],
  otherNames: workloadNames,
  describe: async (store, endpoint) => [
    ...(await describeEndpoint(store, endpoint)),
    ...(await describeInherited(store, endpoint)),
  ],
  inheritedLabels: LABELS_OF_MEMBERS,
  usersOf: usersOfEndpoint,
  remedyIfInUse: "end its container, or use --force: the addresses stay allocated until its DEL",
  remedyIfUnreadable: (remove) => `${remove}, then recreate its workload`,
  uncertainIfUnreadable: ["allocation-without-endpoint"],
};

export const ADMIN_KINDS: readonly AdminKind[] = [
  POOL_ROW,
  RESERVATION_ROW,
  ADDRESS_LIST_ROW,
  IPAM_CONFIGURATION_ROW,
  CLUSTER_INFORMATION_ROW,
  NODE_ROW,
  PROFILE_ROW,
  ENDPOINT_ROW,
  CONTAINER_LABELS_ROW,
  NETWORK_POLICY_ROW,
  GLOBAL_NETWORK_POLICY_ROW,
  STAGED_NETWORK_POLICY_ROW,
  STAGED_GLOBAL_NETWORK_POLICY_ROW,
  STAGED_KUBERNETES_NETWORK_POLICY_ROW,
  NETWORK_SET_ROW,
  GLOBAL_NETWORK_SET_ROW,
  TIER_ROW,
  HOST_ENDPOINT_ROW,
  NODE_AGENT_CONFIGURATION_ROW,
  KUBE_CONTROLLERS_CONFIGURATION_ROW,
  BGP_CONFIGURATION_ROW,
  BGP_PEER_ROW,
  BGP_FILTER_ROW,
];
