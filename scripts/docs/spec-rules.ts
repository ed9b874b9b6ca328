/** The IDs of all rules of the specification: each numbered rule and each row of a table. */
const numbered = (section: string, last: number): readonly string[] =>
  Array.from({ length: last }, (_, index) => `${section}-${index + 1}`);

const rows = (section: string, names: string): readonly string[] =>
  names
    .trim()
    .split(/\s+/)
    .map((name) => `${section}.${name}`);

export const SPEC_RULES: readonly string[] = [
  ...numbered("service", 8),
  ...rows(
    "config",
    `name cniVersion type nodename datastore_type etcd_endpoints etcd_discovery_srv etcd_key_file etcd_cert_file
     etcd_ca_cert_file etcd_authority etcd_scheme log_level log_file_path log_file_max_size log_file_max_age
     log_file_max_count ipam container_settings readiness_gates kubernetes policy feature_control num_queues`,
  ),
  ...rows("ipam", "type assign_ipv4 assign_ipv6 ipv4_pools ipv6_pools CNI_ARGS.IP"),
  ...rows(
    "nested",
    `container_settings.allow_ip_forwarding kubernetes.kubeconfig kubernetes.k8s_api_root policy.type
     feature_control.ip_addrs_no_ipam feature_control.floating_ips`,
  ),
  ...rows(
    "annotation",
    "ipv4pools ipv6pools ipAddrs ipAddrsNoIpam floatingIPs ingress-bandwidth egress-bandwidth value-shape",
  ),
  ...rows("chained", "portmap bandwidth removal"),
  ...rows(
    "installation",
    "apiVersion kind metadata.name linuxPolicySetupTimeoutSeconds ipPools cni.type cni.ipam.type",
  ),
  ...rows("ippool", "apiVersion kind metadata.name cidr ipipMode natOutgoing nodeSelector"),
  ...rows("outbound", "readiness-polling orchestrator-api-read"),
  ...numbered("authentication", 4),
  ...numbered("errors", 8),
  ...rows(
    "limits",
    `log_file_max_size log_file_max_age log_file_max_count num_queues addresses-per-annotation policy-setup-timeout
     portmap-at-scale`,
  ),
  ...numbered("pools", 6),
  ...numbered("versioning", 10),
];
