/** The network config inside the program: decoded, with defaults, and with the program's own names. */

import type { JsonObject } from "../cni/json.ts";
import type { WireConfig } from "./schema.ts";
import { splitEndpoints } from "./urls.ts";

export type NetworkConfig = ReturnType<typeof networkConfigFrom>;

/** `ipamAsGiven`: the unchanged ipam object, for another IPAM plugin. */
export function networkConfigFrom(wire: WireConfig, ipamAsGiven: JsonObject) {
  return {
    name: wire.name,
    cniVersion: wire.cniVersion,
    type: wire.type,
    node: {
      name: wire.nodename,
      nameFile: wire.nodename_file,
      nameFileOptional: wire.nodename_file_optional,
    },
    datastoreType: wire.datastore_type === "kubernetes" ? "orchestrator" : wire.datastore_type,
    datastorePath: wire.datastore_path,
    etcd: etcdFrom(wire),
    log: {
      level: wire.log_level,
      filePath: wire.log_file_path,
      maxSizeMegabytes: wire.log_file_max_size,
      maxAgeDays: wire.log_file_max_age,
      maxCount: wire.log_file_max_count,
    },
    ipam: ipamFrom(wire.ipam, ipamAsGiven),
    allowIpForwarding: wire.container_settings.allow_ip_forwarding,
    readinessGates: wire.readiness_gates ?? [],
    kubernetes: kubernetesFrom(wire),
    policyType: wire.policy.type,
    features: {
      ipAddrsNoIpam: wire.feature_control.ip_addrs_no_ipam,
      floatingIps: wire.feature_control.floating_ips,
      allowedSourcePrefixes: wire.feature_control.allowed_source_prefixes,
    },
    clusterSourcePrefixes: wire.feature_control.cluster_source_prefixes ?? [],
    queueCount: wire.num_queues,
    mtu: wire.mtu,
    policySetupTimeoutSeconds: wire.policy_setup_timeout_seconds,
    endpointStatusDirectory: wire.endpoint_status_dir,
    labels: wire.labels ?? {},
    includeDefaultRoutes: wire.include_default_routes,
  } as const;
}

function etcdFrom(wire: WireConfig) {
  return {
    endpoints: wire.etcd_endpoints === undefined ? undefined : splitEndpoints(wire.etcd_endpoints),
    discoveryDomain: wire.etcd_discovery_srv,
    keyFile: wire.etcd_key_file,
    certFile: wire.etcd_cert_file,
    caCertFile: wire.etcd_ca_cert_file,
    authority: wire.etcd_authority,
    scheme: wire.etcd_scheme,
  } as const;
}

function kubernetesFrom({ kubernetes, policy }: WireConfig) {
  return {
    kubeconfig: kubernetes.kubeconfig,
    apiRoot: kubernetes.k8s_api_root,
    nodeName: kubernetes.node_name,
    olderFields: {
      apiRoot: policy.k8s_api_root,
      token: policy.k8s_auth_token,
      clientCertificateFile: policy.k8s_client_certificate,
      clientKeyFile: policy.k8s_client_key,
      certificateAuthorityFile: policy.k8s_certificate_authority,
    },
  } as const;
}

function ipamFrom(ipam: WireConfig["ipam"], asGiven: JsonObject) {
  const assignIpv6 = ipam.assign_ipv6 === "true";
  return {
    type: ipam.type,
    assignIpv4: ipam.assign_ipv4 === "true",
    assignIpv6,
    ipv4Pools: ipam.ipv4_pools,
    ipv6Pools: assignIpv6 ? ipam.ipv6_pools : undefined,
    asGiven,
  } as const;
}
