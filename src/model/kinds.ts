/**
 * The one table of kinds: a row here gives a kind its commands, its custom
 * resource and its checks. Not for the plugin's path, which imports the kinds
 * it needs one by one.
 */
import type * as v from "valibot";
import { type ClusterInformation, clusterInformation, clusterVersion } from "./cluster-information.ts";
import { affinitySchema, blockSchema, handleSchema } from "./internal-kinds.ts";
import { checkPoolOverlap, checkPoolUpdate, type IPPool, ipPool } from "./ip-pool.ts";
import { type IPReservation, ipReservation } from "./ip-reservation.ts";
import { type IPAMConfiguration, ipamConfiguration } from "./ipam-configuration.ts";
import { IPAM_CONFIGURATION_KEY, type ResourceName, resourceKey, resourcesPrefix } from "./keys.ts";
import { type Node, node } from "./node.ts";
import type { Problem } from "./problem.ts";
import { type Profile, profile } from "./profile.ts";
import type { Resource, ResourceCodec } from "./resource.ts";
import { type WorkloadEndpoint, workloadEndpoint } from "./workload-endpoint.ts";

/** A column of `get`; those marked wide stand only in `-o wide`. */
export interface Column<R extends Resource = Resource> {
  readonly header: string;
  readonly isWide?: true;
  // Methods, so that a row of one kind may stand in the table of all.
  cell(resource: R): string;
}

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
  readonly columns: readonly Column<R>[];
  /** Where the resource lies in the datastore. */
  key(name: ResourceName): string;
  /** Below which all of the kind, or those of a namespace, lie. */
  prefix(namespace?: string): string;
  /** What may not change. */
  checkUpdate?(before: R, after: R): readonly Problem[];
  /** What must hold among all of the kind. */
  checkAmong?(resource: R, all: readonly R[]): readonly Problem[];
}

/** A kind that only the product itself writes; with the orchestrator's datastore it is a custom resource too. */
export interface InternalKind extends KindNames {
  readonly visibility: "internal";
  readonly specSchema: v.GenericSchema;
}

const POOL: PublicKind<IPPool> = {
  ...publicKind(ipPool, "ippools", ["pool", "pools", "ipp"]),
  checkUpdate: checkPoolUpdate,
  checkAmong: checkPoolOverlap,
  columns: [
    { header: "CIDR", cell: ({ spec }) => spec.cidr },
    { header: "BLOCK SIZE", cell: ({ spec }) => `/${spec.blockSize}`, isWide: true },
    { header: "NAT", cell: ({ spec }) => `${spec.natOutgoing}`, isWide: true },
    { header: "IPIP", cell: ({ spec }) => spec.ipipMode, isWide: true },
    { header: "VXLAN", cell: ({ spec }) => spec.vxlanMode, isWide: true },
    { header: "BGP EXPORT", cell: ({ spec }) => `${!spec.disableBGPExport}`, isWide: true },
    { header: "USES", cell: ({ spec }) => spec.allowedUses.join(","), isWide: true },
    { header: "DISABLED", cell: ({ spec }) => `${spec.disabled}` },
    { header: "SELECTOR", cell: ({ spec }) => spec.nodeSelector },
  ],
};

const RESERVATION: PublicKind<IPReservation> = {
  ...publicKind(ipReservation, "ipreservations", ["reservation", "reservations", "ipr"]),
  columns: [{ header: "RESERVED", cell: ({ spec }) => spec.reservedCIDRs.join(",") }],
};

const IPAM_CONFIGURATION: PublicKind<IPAMConfiguration> = {
  ...publicKind(ipamConfiguration, "ipamconfigurations", ["ipamconfig", "ipamconfigs"]),
  // Nothing lies where another name would lead.
  key: (name) => (name.name === "default" ? IPAM_CONFIGURATION_KEY : resourceKey("ipamconfigurations", name)),
  prefix: () => IPAM_CONFIGURATION_KEY,
  columns: [
    { header: "STRICT AFFINITY", cell: ({ spec }) => `${spec.strictAffinity}` },
    { header: "AUTO ALLOCATE", cell: ({ spec }) => `${spec.autoAllocateBlocks}` },
    { header: "MAX BLOCKS PER HOST", cell: ({ spec }) => `${spec.maxBlocksPerHost || "default"}` },
  ],
};

const CLUSTER_INFORMATION: PublicKind<ClusterInformation> = {
  ...publicKind(clusterInformation, "clusterinformations", ["clusterinfo", "clusterinfos"]),
  columns: [
    { header: "CLUSTER GUID", cell: ({ spec }) => spec.clusterGUID ?? "" },
    { header: "TYPE", cell: ({ spec }) => spec.clusterType ?? "" },
    { header: "VERSION", cell: (information) => clusterVersion(information) ?? "" },
    { header: "READY", cell: ({ spec }) => `${spec.datastoreReady ?? "unknown"}` },
  ],
};

const NODE: PublicKind<Node> = {
  ...publicKind(node, "nodes", ["no"]),
  columns: [
    { header: "ASN", cell: ({ spec }) => `${spec.bgp?.asNumber ?? ""}`, isWide: true },
    { header: "IPV4", cell: ({ spec }) => spec.bgp?.ipv4Address ?? "" },
    { header: "IPV6", cell: ({ spec }) => spec.bgp?.ipv6Address ?? "" },
  ],
};

const PROFILE: PublicKind<Profile> = {
  ...publicKind(profile, "profiles", ["pro"]),
  columns: [
    { header: "LABELS", cell: ({ spec }) => formatLabels(spec.labelsToApply ?? {}) },
    { header: "INGRESS", cell: ({ spec }) => `${spec.ingress?.length ?? 0}`, isWide: true },
    { header: "EGRESS", cell: ({ spec }) => `${spec.egress?.length ?? 0}`, isWide: true },
  ],
};

const ENDPOINT: PublicKind<WorkloadEndpoint> = {
  ...publicKind(workloadEndpoint, "workloadendpoints", ["wep", "weps"]),
  columns: [
    { header: "WORKLOAD", cell: ({ spec }) => spec.pod ?? spec.workload ?? spec.containerID ?? "" },
    { header: "NODE", cell: ({ spec }) => spec.node ?? "" },
    { header: "NETWORKS", cell: ({ spec }) => (spec.ipNetworks ?? []).join(",") },
    { header: "INTERFACE", cell: ({ spec }) => spec.interfaceName ?? "" },
    { header: "PROFILES", cell: ({ spec }) => (spec.profiles ?? []).join(","), isWide: true },
    { header: "MAC", cell: ({ spec }) => spec.mac ?? "", isWide: true },
  ],
};

export const PUBLIC_KINDS: readonly PublicKind[] = [
  POOL,
  RESERVATION,
  IPAM_CONFIGURATION,
  CLUSTER_INFORMATION,
  NODE,
  PROFILE,
  ENDPOINT,
];

export const INTERNAL_KINDS: readonly InternalKind[] = [
  internalKind("IPAMBlock", "ipamblocks", blockSchema),
  internalKind("BlockAffinity", "blockaffinities", affinitySchema),
  internalKind("IPAMHandle", "ipamhandles", handleSchema),
];

/** The public kind a user means by `ippool`, `IPPools`, `ipp` … */
export function findKind(word: string): PublicKind | undefined {
  const wanted = word.toLowerCase();
  return PUBLIC_KINDS.find((row) => kindWords(row).includes(wanted));
}

/** Every word that names the kind, in lower case. */
export function kindWords({ kind, plural, shortNames }: KindNames): readonly string[] {
  return [kind.toLowerCase(), plural, ...shortNames];
}

function publicKind<R extends Resource>(codec: ResourceCodec<R>, plural: string, shortNames: readonly string[]) {
  return {
    visibility: "public" as const,
    kind: codec.kind,
    plural,
    shortNames,
    namespaced: codec.namespaced,
    codec,
    key: (name: ResourceName) => resourceKey(plural, name),
    prefix: (namespace?: string) => resourcesPrefix(plural, namespace),
  };
}

function internalKind(kind: string, plural: string, specSchema: v.GenericSchema): InternalKind {
  return { visibility: "internal", kind, plural, shortNames: [], namespaced: false, specSchema };
}

function formatLabels(labels: Readonly<Record<string, string>>): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}=${value}`)
    .join(",");
}
