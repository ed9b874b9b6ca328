/**
 * The network configuration list of an installation, as it is in the ConfigMap. The installation of a node adds what only
 * the node knows: its name, the path of the kubeconfig, the paths of etcd's certificates. Pure.
 */
import type { JsonObject } from "../../cni/json.ts";
import { BANDWIDTH_ENTRY, CNI_VERSION, CNI_VERSIONS, portmapEntry } from "../../config/installed-network-list.ts";
import { identity } from "../../identity.ts";
import { parsePrefix } from "../../ip/prefix.ts";
import type { IPPool } from "../../model/ip-pool.ts";
import type { ClusterFacts } from "../installation/cluster-facts.ts";
import type {
  EffectiveInstallation,
  EffectiveNetwork,
  InstallationDatastore,
} from "../installation/effective-installation.ts";

/** As clusters know it; the state of `host-local` is in a directory of this name. */
const NETWORK_NAME = "k8s-pod-network";

export function networkList(installation: EffectiveInstallation, facts: ClusterFacts): JsonObject {
  const { hostPorts, hostPortsSNAT, bandwidth } = installation.network;
  return {
    name: NETWORK_NAME,
    cniVersion: CNI_VERSION,
    cniVersions: CNI_VERSIONS,
    plugins: [
      pluginEntry(installation, facts),
      ...(hostPorts === "Enabled" ? [portmapEntry(hostPortsSNAT === "Enabled")] : []),
      ...(bandwidth === "Enabled" ? [BANDWIDTH_ENTRY] : []),
    ],
  };
}

function pluginEntry(installation: EffectiveInstallation, facts: ClusterFacts): JsonObject {
  const { network, logging } = installation;
  return {
    type: identity.product,
    ...datastoreFields(installation.datastore),
    kubernetes: { kubeconfig: kubeconfigPath(installation) },
    ...(network.mtu === 0 ? {} : { mtu: network.mtu }),
    log_level: logging.level,
    ...(logging.filePath === undefined ? {} : { log_file_path: logging.filePath }),
    log_file_max_size: logging.maxSizeMegabytes,
    log_file_max_age: logging.maxAgeDays,
    log_file_max_count: logging.maxCount,
    ipam: ipamFields(installation, facts),
    policy: { type: "k8s" },
    policy_setup_timeout_seconds: network.linuxPolicySetupTimeoutSeconds,
    container_settings: { allow_ip_forwarding: network.containerIPForwarding === "Enabled" },
    ...featureFields(network),
    ...(network.numQueues === 1 ? {} : { num_queues: network.numQueues }),
    ...(network.readinessGates.length === 0 ? {} : { readiness_gates: network.readinessGates }),
    capabilities: { ips: true, mac: true },
  };
}

/** On the host, written by the installation of the node. */
function kubeconfigPath({ cni }: EffectiveInstallation): string {
  return `${cni.confDir}/${identity.product}-kubeconfig`;
}

function datastoreFields(datastore: InstallationDatastore): JsonObject {
  if (datastore.type === "Kubernetes") return { datastore_type: "kubernetes" };
  return {
    datastore_type: "etcdv3",
    ...(datastore.endpoints === "" ? {} : { etcd_endpoints: datastore.endpoints }),
    ...(datastore.discoveryDomain === undefined ? {} : { etcd_discovery_srv: datastore.discoveryDomain }),
  };
}

function featureFields({ featureControl }: EffectiveNetwork): JsonObject {
  const { ipAddrsNoIpam, floatingIPs, allowedSourcePrefixes, clusterSourcePrefixes } = featureControl;
  const isChanged = ipAddrsNoIpam || floatingIPs || allowedSourcePrefixes || clusterSourcePrefixes.length > 0;
  if (!isChanged) return {};
  return {
    feature_control: {
      ip_addrs_no_ipam: ipAddrsNoIpam,
      floating_ips: floatingIPs,
      allowed_source_prefixes: allowedSourcePrefixes,
      ...(clusterSourcePrefixes.length === 0 ? {} : { cluster_source_prefixes: clusterSourcePrefixes }),
    },
  };
}

function ipamFields({ cni, network }: EffectiveInstallation, facts: ClusterFacts): JsonObject {
  const families = familiesOf(network, facts);
  if (cni.ipam === "HostLocal") return { type: "host-local", ranges: podRanges(families) };
  return {
    type: identity.ipamType,
    assign_ipv4: String(families.ipv4),
    assign_ipv6: String(families.ipv6),
    ...(network.ipv4Pools.length === 0 ? {} : { ipv4_pools: network.ipv4Pools }),
    ...(network.ipv6Pools.length === 0 ? {} : { ipv6_pools: network.ipv6Pools }),
  };
}

interface Families {
  readonly ipv4: boolean;
  readonly ipv6: boolean;
}

/** The plugin replaces these words by the ranges of the Node. */
function podRanges({ ipv4, ipv6 }: Families): readonly unknown[] {
  return [...(ipv4 ? [[{ subnet: "usePodCidr" }]] : []), ...(ipv6 ? [[{ subnet: "usePodCidrIPv6" }]] : [])];
}

/**
 * The families that pods get addresses of: those of the usable pools, declared ones included. Without any pool, which
 * HostLocal does not need, those of the platform's ranges; IPv4 if they are not known.
 */
function familiesOf({ ipPools }: EffectiveNetwork, { pools, platformPodCidrs }: ClusterFacts): Families {
  const declared = new Set(ipPools.map(({ metadata }) => metadata.name));
  const all = [...ipPools, ...pools.filter(({ metadata }) => !declared.has(metadata.name))];
  const ranges = all.length === 0 ? platformPodCidrs : all.filter(isForPods).map(({ spec }) => spec.cidr);
  const families = new Set(ranges.map((cidr) => parsePrefix(cidr)?.network.family));
  const ipv6 = families.has(6);
  return { ipv4: families.has(4) || !ipv6, ipv6 };
}

function isForPods({ spec }: IPPool): boolean {
  return !spec.disabled && spec.allowedUses.includes("Workload");
}
