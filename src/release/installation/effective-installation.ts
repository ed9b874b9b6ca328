/**
 * An Installation that is complete and valid: `default` with `overlay` merged over it and every default filled in.
 * Everything else of the operator works on this; only the schema and the defaults know what a user may leave out.
 */
import type { AdmissionGroup } from "../../model/installation/admission.ts";
import type { DeclaredFlows } from "../../model/installation/flows.ts";
import type { IPPool } from "../../model/ip-pool.ts";

export interface EffectiveInstallation {
  readonly image: ImageSource;
  readonly kubernetesProvider: string;
  readonly datastore: InstallationDatastore;
  readonly cni: {
    /** "Pools": addresses of the product's own IP pools. */
    readonly ipam: "Pools" | "HostLocal";
    readonly binDir: string;
    readonly confDir: string;
  };
  readonly network: EffectiveNetwork;
  readonly flows: { readonly mode: "Enabled" | "Disabled" } & Omit<DeclaredFlows, "mode">;
  readonly console: {
    readonly mode: "Enabled" | "Disabled";
    /** Host names and addresses, in addition to those of its Service. */
    readonly hosts: readonly string[];
    /** The Service of a Prometheus. Absent: the console shows no alerts. */
    readonly alerts?: { readonly namespace: string; readonly service: string; readonly port: number };
  };
  /** The directory of the kubelet, where the node agent serves its CSI driver. Absent: it does not. */
  readonly kubeletDirectory?: string;
  readonly logging: {
    /** As `log_level` of the network config. */
    readonly level: "ERROR" | "WARNING" | "INFO" | "DEBUG";
    /** On the nodes. Absent: none. */
    readonly filePath?: string;
    readonly maxSizeMegabytes: number;
    readonly maxAgeDays: number;
    readonly maxCount: number;
  };
  readonly controlPlane: {
    readonly replicas: number;
    readonly nodeSelector: Readonly<Record<string, string>>;
    readonly tolerations: readonly object[];
  };
  /** Absent: the node agent serves no metrics. */
  readonly nodeMetricsPort?: number;
  /** Of the DaemonSet of the node agent: as the API has it. */
  readonly nodeUpdateStrategy: {
    readonly type: "RollingUpdate";
    readonly rollingUpdate: { readonly maxUnavailable: number | string };
  };
  /** Whether the API server evaluates each group of admission policies. */
  readonly admissionPolicies: Readonly<Record<AdmissionGroup, boolean>>;
  /** What an administrator overrides in the two workloads. */
  readonly overrides: {
    readonly node: WorkloadOverride;
    readonly controllers: WorkloadOverride;
  };
}

export interface ImageSource {
  /** Ends with a slash, or is empty. */
  readonly registry: string;
  /** Without slashes at its ends; may be empty. */
  readonly path: string;
  readonly prefix: string;
  /** Names of Secrets in the namespace of the operator. */
  readonly pullSecrets: readonly string[];
}

export type InstallationDatastore =
  | { readonly type: "Kubernetes" }
  | {
      readonly type: "Etcd";
      /** As `etcd_endpoints` of the network config; empty if they are found by SRV records, or written elsewhere. */
      readonly endpoints: string;
      /** As `etcd_discovery_srv` of the network config. */
      readonly discoveryDomain?: string;
      /** A Secret in the namespace of the operator with `etcd-ca`, `etcd-cert` and `etcd-key`. */
      readonly secretName?: string;
    };

export interface EffectiveNetwork {
  readonly bgp: "Enabled" | "Disabled";
  /** Complete, with names; empty if the operator manages none. */
  readonly ipPools: readonly IPPool[];
  /** 0: detected on each node. */
  readonly mtu: number;
  /** As NodeAgentConfiguration spells a method. */
  readonly ipv4AddressDetection?: string;
  readonly ipv6AddressDetection?: string;
  readonly hostPorts: "Enabled" | "Disabled";
  readonly hostPortsSNAT: "Enabled" | "Disabled";
  readonly bandwidth: "Enabled" | "Disabled";
  readonly containerIPForwarding: "Enabled" | "Disabled";
  readonly linuxPolicySetupTimeoutSeconds: number;
  readonly featureControl: {
    readonly ipAddrsNoIpam: boolean;
    readonly floatingIPs: boolean;
    readonly allowedSourcePrefixes: boolean;
    /** What pods may send from although it overlaps a pool or an address of a node. */
    readonly clusterSourcePrefixes: readonly string[];
  };
  readonly numQueues: number;
  readonly readinessGates: readonly string[];
  /** Names or CIDRs, for the network config; empty: all pools. */
  readonly ipv4Pools: readonly string[];
  readonly ipv6Pools: readonly string[];
}

export interface WorkloadOverride {
  readonly resources?: object;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly tolerations?: readonly object[];
  readonly affinity?: object;
}
