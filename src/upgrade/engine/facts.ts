/** What `detect` finds out about a cluster: data only, printed by `upgrade detect -o json` and kept in the plan. */

/** The manifests of the spec's rules 7 and 8. "other": policy with another networking plugin; "fabric": policy only, advanced. */
export type ManifestNetwork = "own" | "other" | "fabric";

export type InstallMethod =
  | { readonly kind: "chart"; readonly release: ChartRelease }
  | { readonly kind: "operator" }
  | { readonly kind: "manifest"; readonly network: ManifestNetwork };

/** The newest record of a Helm release. */
export interface ChartRelease {
  readonly name: string;
  readonly namespace: string;
  readonly revision: number;
  readonly chartVersion: string;
  /** `deployed`, `pending-upgrade` … */
  readonly status: string;
}

/** Where the resources of the product are stored. "former": as `crd.vendor.org/v1`; "current": as `vendor.org/v3`. */
export type Storage = "former" | "current" | "etcd";

export interface PartVersion {
  /** `DaemonSet kube-system/vendor-node`, `ClusterInformation default` … */
  readonly part: string;
  /** Absent if it cannot be read, for example because the image is named by its digest. */
  readonly version?: string;
}

export interface Facts {
  readonly method: InstallMethod;
  readonly datastore: "kubernetes" | "etcd";
  readonly storage: Storage;
  /** Of the whole cluster; the earliest while an upgrade is half finished. */
  readonly version: string;
  /** Of this tool: what the cluster is upgraded to. */
  readonly target: string;
  readonly parts: readonly PartVersion[];
  readonly orchestratorVersion: string;
  readonly nodes: readonly string[];
  /** Where the node agents run: `kube-system`, or the namespace of the operator's components. */
  readonly namespace: string;
  /** Whether `vendor.org/v3` is served by an aggregated API of an earlier release. */
  readonly hasAggregatedApi: boolean;
  /** An upgrade that was begun and not ended, by this tool or by hand: what shows it. */
  readonly unfinished: readonly string[];
  /** Whether pods have a sidecar for application layer policy, or the injector's template has one. */
  readonly hasApplicationLayerPolicy: boolean;
  /** Host endpoints of all interfaces that are not automatic. */
  readonly hostEndpoints: readonly string[];
  /** Those of single interfaces or addresses: they stay as they are. */
  readonly otherHostEndpoints?: readonly string[];
  readonly hasUpgradePolicy: boolean;
  /** The settings of the former node agents let pods with the annotation send from further sources. */
  readonly allowsSourceSpoofing?: boolean;
  /** Objects with owner references to `vendor.org/v3`, as `KIND NAMESPACE/NAME`. */
  readonly ownedObjects: readonly string[];
}

/** Why nothing can be planned, and which flag or command helps. */
export interface Obstacle {
  readonly message: string;
  readonly remedy: string;
}

/** The manifests of the spec's rules 7 and 8, as they are named to users. */
export const NETWORK_TITLES: Readonly<Record<ManifestNetwork, string>> = {
  own: "networking and policy",
  other: "policy with another networking plugin",
  fabric: "policy only, advanced",
};
