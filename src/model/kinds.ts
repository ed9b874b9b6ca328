/**
 * The table of kinds: names, API group, codec, keys and the checks that do not
 * need a datastore. What the admin tool adds to a kind (columns, hooks) is in
 * its own table, `admin/kinds/`. Not for the plugin's path, which imports the
 * kinds it needs one by one.
 */
import type * as v from "valibot";
import { type GroupVersion, PRODUCT_API } from "../identity.ts";
import { type BGPConfiguration, bgpConfiguration } from "./bgp-configuration.ts";
import { type BGPFilter, bgpFilter } from "./bgp-filter.ts";
import { type BGPPeer, bgpPeer } from "./bgp-peer.ts";
import { type ClusterInformation, clusterInformation } from "./cluster-information.ts";
import { type ContainerLabels, checkSameTarget, checkSameTargets, containerLabels } from "./container-labels.ts";
import { type GlobalNetworkPolicy, globalNetworkPolicy } from "./global-network-policy.ts";
import { type GlobalNetworkSet, globalNetworkSet } from "./global-network-set.ts";
import { type HostEndpoint, hostEndpoint } from "./host-endpoint.ts";
import { affinitySchema, blockSchema, handleSchema } from "./internal-kinds.ts";
import { type IPAddressList, ipAddressList } from "./ip-address-list.ts";
import { checkPoolOverlap, checkPoolOverlaps, checkPoolUpdate, type IPPool, ipPool } from "./ip-pool.ts";
import { type IPReservation, ipReservation } from "./ip-reservation.ts";
import { type IPAMConfiguration, ipamConfiguration } from "./ipam-configuration.ts";
import { type Keys, PRODUCT_KEYS, type ResourceName } from "./keys.ts";
import { type KubeControllersConfiguration, kubeControllersConfiguration } from "./kube-controllers-configuration.ts";
import { type NetworkPolicy, networkPolicy } from "./network-policy.ts";
import { type NetworkSet, networkSet } from "./network-set.ts";
import { type Node, node } from "./node.ts";
import { type NodeAgentConfiguration, nodeAgentConfiguration } from "./node-agent-configuration.ts";
import type { Problem } from "./problem.ts";
import { type Profile, profile } from "./profile.ts";
import type { Resource, ResourceCodec } from "./resource.ts";
import { type StagedGlobalNetworkPolicy, stagedGlobalNetworkPolicy } from "./staged-global-network-policy.ts";
import {
  type StagedKubernetesNetworkPolicy,
  stagedKubernetesNetworkPolicy,
} from "./staged-kubernetes-network-policy.ts";
import { type StagedNetworkPolicy, stagedNetworkPolicy } from "./staged-network-policy.ts";
import { type Tier, tier } from "./tier.ts";
import { type WorkloadEndpoint, workloadEndpoint } from "./workload-endpoint.ts";

interface KindNames {
  readonly kind: string;
  readonly plural: string;
  readonly shortNames: readonly string[];
  readonly namespaced: boolean;
}

/** A kind that users see and apply. */
export interface PublicKind<R extends Resource = Resource> extends KindNames {
  readonly visibility: "public";
  readonly codec: ResourceCodec<R>;
  // Methods, so that a row of one kind is assignable to the table of all kinds.
  /** The key of the resource; `keys`: those of another product's tree, by default this product's. */
  key(name: ResourceName, keys?: Keys): string;
  /** The prefix of all resources of the kind, or of those in a namespace. */
  prefix(namespace?: string, keys?: Keys): string;
  /** Checks fields that cannot change. */
  checkUpdate?(before: R, after: R): readonly Problem[];
  /** What resources of the kind make wrong together. */
  readonly among?: AmongChecks<R>;
}

/** Both find the same: `apply` has one resource to check, `validate` all of a file. */
interface AmongChecks<R extends Resource> {
  /** Checks the resource against all others of the kind. */
  one(resource: R, all: readonly R[]): readonly Problem[];
  /** Checks each against all others, in time that does not grow with the square of their number. */
  all(all: readonly R[]): ReadonlyMap<R, readonly Problem[]>;
}

/** A kind that only the product itself writes; in the orchestrator's datastore it is a custom resource too. */
export interface InternalKind extends KindNames {
  readonly visibility: "internal";
  readonly api: GroupVersion;
  readonly specSchema: v.GenericSchema;
}

export const POOL: PublicKind<IPPool> = {
  ...publicKind(ipPool, "ippools", ["pool", "pools", "ipp"]),
  checkUpdate: checkPoolUpdate,
  among: { one: checkPoolOverlap, all: checkPoolOverlaps },
};

export const RESERVATION: PublicKind<IPReservation> = publicKind(ipReservation, "ipreservations", [
  "reservation",
  "reservations",
  "ipr",
]);

export const ADDRESS_LIST: PublicKind<IPAddressList> = publicKind(ipAddressList, "ipaddresslists", [
  "addresslist",
  "addresslists",
  "ipal",
]);

export const IPAM_CONFIGURATION: PublicKind<IPAMConfiguration> = {
  ...publicKind(ipamConfiguration, "ipamconfigurations", ["ipamconfig", "ipamconfigs"]),
  // The key with another name does not exist.
  key: (name, keys = PRODUCT_KEYS) =>
    name.name === "default" ? keys.ipamConfigurationKey : keys.resourceKey("ipamconfigurations", name),
  prefix: (_, keys = PRODUCT_KEYS) => keys.ipamConfigurationKey,
};

export const CLUSTER_INFORMATION: PublicKind<ClusterInformation> = publicKind(
  clusterInformation,
  "clusterinformations",
  ["clusterinfo", "clusterinfos"],
);

export const NODE: PublicKind<Node> = publicKind(node, "nodes", ["no"]);

export const PROFILE: PublicKind<Profile> = publicKind(profile, "profiles", ["pro"]);

export const ENDPOINT: PublicKind<WorkloadEndpoint> = publicKind(workloadEndpoint, "workloadendpoints", [
  "wep",
  "weps",
]);

export const CONTAINER_LABELS: PublicKind<ContainerLabels> = {
  ...publicKind(containerLabels, "containerlabels", ["cl"]),
  among: { one: checkSameTarget, all: checkSameTargets },
};

export const NETWORK_POLICY: PublicKind<NetworkPolicy> = publicKind(networkPolicy, "networkpolicies", ["np"]);

export const GLOBAL_NETWORK_POLICY: PublicKind<GlobalNetworkPolicy> = publicKind(
  globalNetworkPolicy,
  "globalnetworkpolicies",
  ["gnp"],
);

export const STAGED_NETWORK_POLICY: PublicKind<StagedNetworkPolicy> = publicKind(
  stagedNetworkPolicy,
  "stagednetworkpolicies",
  ["snp", "scnp"],
);

export const STAGED_GLOBAL_NETWORK_POLICY: PublicKind<StagedGlobalNetworkPolicy> = publicKind(
  stagedGlobalNetworkPolicy,
  "stagedglobalnetworkpolicies",
  ["sgnp"],
);

export const STAGED_KUBERNETES_NETWORK_POLICY: PublicKind<StagedKubernetesNetworkPolicy> = publicKind(
  stagedKubernetesNetworkPolicy,
  "stagedkubernetesnetworkpolicies",
  ["sknp"],
);

export const NETWORK_SET: PublicKind<NetworkSet> = publicKind(networkSet, "networksets", ["netset", "netsets"]);

export const GLOBAL_NETWORK_SET: PublicKind<GlobalNetworkSet> = publicKind(globalNetworkSet, "globalnetworksets", [
  "gns",
]);

export const TIER: PublicKind<Tier> = publicKind(tier, "tiers", []);

export const HOST_ENDPOINT: PublicKind<HostEndpoint> = publicKind(hostEndpoint, "hostendpoints", ["hep", "heps"]);

export const NODE_AGENT_CONFIGURATION: PublicKind<NodeAgentConfiguration> = publicKind(
  nodeAgentConfiguration,
  "nodeagentconfigurations",
  ["nodeagentconfig", "nodeagentconfigs"],
);

export const KUBE_CONTROLLERS_CONFIGURATION: PublicKind<KubeControllersConfiguration> = publicKind(
  kubeControllersConfiguration,
  "kubecontrollersconfigurations",
  ["kubecontrollersconfig", "kubecontrollersconfigs"],
);

export const BGP_CONFIGURATION: PublicKind<BGPConfiguration> = publicKind(bgpConfiguration, "bgpconfigurations", [
  "bgpconfig",
  "bgpconfigs",
]);

export const BGP_PEER: PublicKind<BGPPeer> = publicKind(bgpPeer, "bgppeers", ["bgpp"]);

export const BGP_FILTER: PublicKind<BGPFilter> = publicKind(bgpFilter, "bgpfilters", ["bgpf"]);

export const PUBLIC_KINDS: readonly PublicKind[] = [
  POOL,
  RESERVATION,
  ADDRESS_LIST,
  IPAM_CONFIGURATION,
  CLUSTER_INFORMATION,
  NODE,
  PROFILE,
  ENDPOINT,
  CONTAINER_LABELS,
  NETWORK_POLICY,
  GLOBAL_NETWORK_POLICY,
  STAGED_NETWORK_POLICY,
  STAGED_GLOBAL_NETWORK_POLICY,
  STAGED_KUBERNETES_NETWORK_POLICY,
  NETWORK_SET,
  GLOBAL_NETWORK_SET,
  TIER,
  HOST_ENDPOINT,
  NODE_AGENT_CONFIGURATION,
  KUBE_CONTROLLERS_CONFIGURATION,
  BGP_CONFIGURATION,
  BGP_PEER,
  BGP_FILTER,
];

export const INTERNAL_KINDS: readonly InternalKind[] = [
  internalKind("IPAMBlock", "ipamblocks", blockSchema),
  internalKind("BlockAffinity", "blockaffinities", affinitySchema),
  internalKind("IPAMHandle", "ipamhandles", handleSchema),
];

/** Finds a kind by any of its names: `ippool`, `IPPools`, `ipp` … */
export function findKind<Kind extends KindNames>(kinds: readonly Kind[], word: string): Kind | undefined {
  const wanted = word.toLowerCase();
  return kinds.find((row) => kindWords(row).includes(wanted));
}

/** All names of the kind, in lower case. A kind may be its own plural. */
export function kindWords({ kind, plural, shortNames }: KindNames): readonly string[] {
  return [...new Set([kind.toLowerCase(), plural, ...shortNames])];
}

/** The row of a kind that is stored in the usual format under the usual key. */
export function publicKind<R extends Resource>(
  codec: ResourceCodec<R>,
  plural: string,
  shortNames: readonly string[],
): PublicKind<R> {
  const { kind, namespaced } = codec;
  // A kind of the product's own group is stored in the own group of any tree.
  const api = codec.api === PRODUCT_API ? undefined : codec.api;
  return {
    visibility: "public",
    kind,
    plural,
    shortNames,
    namespaced,
    codec,
    key: (name, keys = PRODUCT_KEYS) => keys.resourceKey(plural, name, api),
    prefix: (namespace, keys = PRODUCT_KEYS) => keys.resourcesPrefix(plural, namespace, api),
  };
}

function internalKind(kind: string, plural: string, specSchema: v.GenericSchema): InternalKind {
  return { visibility: "internal", kind, plural, shortNames: [], namespaced: false, api: PRODUCT_API, specSchema };
}
