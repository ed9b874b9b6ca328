/**
 * Where the Installation says what an option of the network config says, or why it does not. A test compares the table with
 * the schema of the network config and with what the operator renders, so that no option is forgotten.
 */

import type { Entries } from "../../src/config/field.ts";
import { networkConfigFields } from "../../src/config/schema.ts";
import { identity } from "../../src/identity.ts";
import { HOST_LOCAL, OWN_TYPE } from "../../src/model/installation/choices.ts";
import { NETWORK_FIELD } from "../../src/model/installation/names.ts";
import { API_ENDPOINT_CONFIG_MAP } from "../../src/release/workloads/names.ts";

export type OptionRow =
  | {
      /** Of the Installation's `spec`. */
      readonly field: string;
      /** A value of the field, what it makes of the option (`undefined`: it is absent), and what else has to be set. */
      readonly example: { readonly value: unknown; readonly option: unknown; readonly with?: object };
    }
  /** Why there is no field. */
  | { readonly reason: string };

const ofNetwork = (field: string, value: unknown, option: unknown): OptionRow => ({
  field: `${NETWORK_FIELD}.${field}`,
  example: { value, option },
});

const ofLog = (field: string, value: unknown, option: unknown): OptionRow => ({
  field: `logging.cni.${field}`,
  example: { value, option },
});

const ENDPOINTS = ["https://10.0.0.10:2379", "https://10.0.0.11:2379"];
const DEPRECATED = { reason: "deprecated: use `datastore.etcd.endpoints`" };
const ON_EVERY_NODE = { reason: "the installation of a node writes the name of its Node into `nodename`" };
const IN_KUBECONFIG = { reason: "in the kubeconfig, which the installation of a node writes" };
const FROM_POOLS = { reason: `follows from the families of the pools (\`${NETWORK_FIELD}.ipPools\`)` };
const ETCD_FILES = {
  reason: "the installation of a node writes the files and their paths: `datastore.etcd.secretName`",
};

/** By the option's path; options of the chained plugins begin with the type of their entry. */
export const INSTALLATION_OPTIONS: Readonly<Record<string, OptionRow>> = {
  name: { reason: "the same in every cluster: the state of `host-local` is in a directory of this name" },
  cniVersion: { reason: "written for every runtime, with the versions among which newer ones choose (`cniVersions`)" },
  type: { field: "cni.type", example: { value: OWN_TYPE, option: identity.product } },
  nodename: ON_EVERY_NODE,
  nodename_file: ON_EVERY_NODE,
  nodename_file_optional: ON_EVERY_NODE,
  datastore_type: {
    field: "datastore.type",
    example: { value: "Etcd", option: "etcdv3", with: { datastore: { etcd: { endpoints: ENDPOINTS } } } },
  },
  datastore_path: { reason: "of the datastore `embedded`, which is a file on one host: not for clusters" },
  etcd_endpoints: {
    field: "datastore.etcd.endpoints",
    example: { value: ENDPOINTS, option: ENDPOINTS.join(","), with: { datastore: { type: "Etcd" } } },
  },
  etcd_discovery_srv: {
    field: "datastore.etcd.discoverySrv",
    example: { value: "etcd.example.org", option: "etcd.example.org", with: { datastore: { type: "Etcd" } } },
  },
  etcd_key_file: ETCD_FILES,
  etcd_cert_file: ETCD_FILES,
  etcd_ca_cert_file: ETCD_FILES,
  etcd_authority: DEPRECATED,
  etcd_scheme: DEPRECATED,
  log_level: ofLog("logSeverity", "Warning", "WARNING"),
  log_file_path: ofLog("logFilePath", "None", undefined),
  log_file_max_size: ofLog("logFileMaxSize", "2Gi", 2048),
  log_file_max_age: ofLog("logFileMaxAgeDays", 7, 7),
  log_file_max_count: ofLog("logFileMaxCount", 3, 3),
  "ipam.type": { field: "cni.ipam.type", example: { value: HOST_LOCAL, option: "host-local" } },
  "ipam.assign_ipv4": FROM_POOLS,
  "ipam.assign_ipv6": FROM_POOLS,
  "ipam.ipv4_pools": ofNetwork("ipv4Pools", ["default-ipv4-ippool"], ["default-ipv4-ippool"]),
  "ipam.ipv6_pools": {
    field: `${NETWORK_FIELD}.ipv6Pools`,
    example: {
      value: ["fd00:10::/48"],
      option: ["fd00:10::/48"],
      with: { [NETWORK_FIELD]: { ipPools: [{ cidr: "fd00:10::/48" }] } },
    },
  },
  "container_settings.allow_ip_forwarding": ofNetwork("containerIPForwarding", "Enabled", true),
  "kubernetes.kubeconfig": {
    field: "cni.confDir",
    example: { value: "/etc/net.d", option: `/etc/net.d/${identity.product}-kubeconfig` },
  },
  "kubernetes.k8s_api_root": {
    reason: `in the kubeconfig; another address of the API server: ConfigMap \`${API_ENDPOINT_CONFIG_MAP}\``,
  },
  "kubernetes.node_name": { reason: "`nodename` is the name of the Node" },
  "policy.type": { reason: "always `k8s`" },
  "policy.k8s_api_root": IN_KUBECONFIG,
  "policy.k8s_auth_token": IN_KUBECONFIG,
  "policy.k8s_client_certificate": IN_KUBECONFIG,
  "policy.k8s_client_key": IN_KUBECONFIG,
  "policy.k8s_certificate_authority": IN_KUBECONFIG,
  "feature_control.ip_addrs_no_ipam": ofNetwork("featureControl.ipAddrsNoIpam", true, true),
  "feature_control.floating_ips": ofNetwork("featureControl.floatingIPs", true, true),
  "feature_control.allowed_source_prefixes": ofNetwork("featureControl.allowedSourcePrefixes", true, true),
  "feature_control.cluster_source_prefixes": ofNetwork(
    "featureControl.clusterSourcePrefixes",
    ["10.1.0.0/24"],
    ["10.1.0.0/24"],
  ),
  readiness_gates: ofNetwork("readinessGates", ["http://127.0.0.1:9099/"], ["http://127.0.0.1:9099/"]),
  num_queues: ofNetwork("numQueues", 4, 4),
  mtu: ofNetwork("mtu", 1400, 1400),
  policy_setup_timeout_seconds: ofNetwork("linuxPolicySetupTimeoutSeconds", 10, 10),
  endpoint_status_dir: { reason: "the directory that the node agent writes; both programs are of one release" },
  labels: { reason: "for workloads without Kubernetes: pods have labels" },
  include_default_routes: { reason: "for `routes` of `host-local`, which the operator does not write" },
  portmap: ofNetwork("hostPorts", "Disabled", undefined),
  "portmap.snat": ofNetwork("hostPortsSNAT", "Disabled", false),
  bandwidth: ofNetwork("bandwidth", "Disabled", undefined),
};

/** Every option of docs/network-config.md, and what a user may change in the entries of the chained plugins. */
export function optionPaths(): readonly string[] {
  return [...pathsIn(networkConfigFields(), ""), "portmap", "portmap.snat", "bandwidth"];
}

function pathsIn(fields: Entries, prefix: string): readonly string[] {
  return Object.entries(fields).flatMap(([name, entry]) =>
    entry.kind === "section" ? pathsIn(entry.fields, `${prefix}${name}.`) : [`${prefix}${name}`],
  );
}
