/**
 * Every clause of the specification that promises something, in its own words. Those of one table row ("default" and the
 * value), and those of a sentence whose parts are done by different code, are put together from its words.
 *
 * A rule is a numbered rule or a row of a table. The lines below it are its clauses: `service-4.b` is the second clause of
 * `service-4`; the only clause of a rule has the rule's own ID.
 */
const CLAUSES = `
naming
  the neutral word vendor stands in for the product name wherever an identifier that holds the name must be given
  orchestrator likewise stands for the container orchestrator's name inside identifiers

service-1
  used through the standard CNI mechanism
  configured by a JSON network config
  configures pod networking
  assigns pod addresses through an IPAM plugin
service-2
  can enforce network policy when a policy type is set
service-3
  the network config need not be edited directly
  the operator's installation resource carries the settings
service-4
  Minimal network config: name, cniVersion, type = vendor, ipam
  name (any string)
  an object whose type is vendor-ipam
service-5
  must carry nodename with the same node name
service-6
  Logs always go to stderr
  by default they are also written to a file on each host
service-7
  (1) orchestrator annotations, (2) CNI configuration
  (3) IP pool node selectors
service-8
  not reassigned to workloads that are already running
  To give running workloads addresses from a newly configured pool, recreate them

config.name
  string, required
  Any name.
config.cniVersion
  CNI spec version
  Chaining several plugins requires the CNI 0.3.0 spec
  required: yes in the minimal config
config.type
  vendor
  string, required
config.nodename
  required only when it differs from the host name
config.datastore_type
  default etcdv3
  Allowed: etcdv3
  orchestrator (the orchestrator's own API as datastore)
config.etcd_endpoints
  Comma-separated list of endpoint URLs
  Used when datastore_type is etcdv3
config.etcd_discovery_srv
  used to find endpoints via SRV records
  Mutually exclusive with etcd_endpoints
config.etcd_key_file
  Private key matching the client certificate
  enables mutual TLS
config.etcd_cert_file
  Client certificate; enables mutual TLS
config.etcd_ca_cert_file
  Root certificate file of the CA that issued the server certificate
  may hold several root certificates, each CA in it is trusted
config.etcd_authority
  default 127.0.0.1:2379
  Deprecated
  Ignored when etcd_endpoints is set
config.etcd_scheme
  default http
  Deprecated
config.log_level
  default INFO
  Allowed: ERROR, WARNING, INFO, DEBUG
config.log_file_path
  default /var/log/<vendor>/cni/cni.log
  Log file on the host
  Removing the option disables file logging
config.log_file_max_size
  default 100 (MB)
  Size at which a log file is rotated
config.log_file_max_age
  default 30 (days)
  Age after which old log files are removed
config.log_file_max_count
  default 10
  Number of rotated log files kept before cleanup
config.ipam
  object, required
config.container_settings
  Holds allow_ip_forwarding
config.readiness_gates
  array of string (URL)
  Endpoints polled before pod networking continues
config.kubernetes
  Orchestrator API access
config.policy
  Holds type
config.feature_control
  Feature switches
config.num_queues
  default 1
  Sets both num_rx_queues and num_tx_queues of the virtual interfaces

ipam.type
  vendor-ipam (default IPAM)
  or a host-local IPAM
ipam.assign_ipv4
  string (not boolean)
  default true
  Whether IPv4 addresses are assigned
ipam.assign_ipv6
  string (not boolean)
  default false
  Whether IPv6 addresses are assigned
ipam.ipv4_pools
  default: all available pools
  CIDRs or pool names to draw IPv4 addresses from
ipam.ipv6_pools
  default: all available pools
  CIDRs or pool names
  honoured only when assign_ipv6 is true
ipam.CNI_ARGS.IP
  requested by setting IP in CNI_ARGS
  (Calico-style IPAM only)

nested.container_settings.allow_ip_forwarding
  default false
  IP forwarding inside the container namespace
nested.kubernetes.kubeconfig
  Recommended way to give API access
nested.kubernetes.k8s_api_root
  giving the API location directly
nested.policy.type
  The only supported value is k8s
  enables the orchestrator's NetworkPolicy resource
nested.feature_control.ip_addrs_no_ipam
  default false (disabled)
  Enables the ipAddrsNoIpam annotation
nested.feature_control.floating_ips
  default false (disabled)
  Enables the floatingIPs annotation

annotation.place
  on pods, and for pools also on namespaces
annotation.value-shape
  a string containing a JSON array of strings
annotation.ipv4pools
  list of IPv4 pool names or CIDRs of existing pools
  Pools to choose the pod address from; overrides the CNI config pools
annotation.ipv6pools
  list of IPv6 pool names or CIDRs of existing pools
  Same, for IPv6
annotation.ipAddrs
  Addresses assigned via IPAM
  must lie within a configured pool
  list of IPv4 and/or IPv6 addresses
annotation.ipAddrsNoIpam
  Addresses assigned bypassing IPAM
  requires feature_control.ip_addrs_no_ipam = true
  list of IPv4 and/or IPv6 addresses
annotation.floatingIPs
  Floating IPs assigned to the pod's workload endpoint
  requires feature_control.floating_ips = true
  list of addresses
annotation.ingress-bandwidth
  <n>M = n megabit per second
  orchestrator.io/ingress-bandwidth: Ingress shaping (bandwidth plugin)
annotation.egress-bandwidth
  quantity string, same form
  orchestrator.io/egress-bandwidth: Egress shaping (bandwidth plugin)

chained.default
  both enabled by default
chained.portmap
  snat boolean (true in the default)
  capabilities.portMappings boolean (true)
  Implements the orchestrator's host-port function
  type = portmap
chained.bandwidth
  capabilities.bandwidth boolean (true)
  Pod ingress and egress traffic shaping
  type = bandwidth
chained.removal
  To disable one, remove its section from the network configuration list
  Only these two chained plugins are supported

installation.apiVersion
  operator.<vendor>.io/v1
installation.kind
  Installation
installation.metadata.name
  default
installation.linuxPolicySetupTimeoutSeconds
  Delays new pods from starting containers until their policy is programmed
  or this time has elapsed, whichever is first
  integer (seconds)
installation.ipPools
  list of objects with cidr; IPv4 and/or IPv6 pools
installation.cni.type
  Example value <Vendor>
installation.cni.ipam.type
  HostLocal selects host-local IPAM
  (the API field is Spec.CNI.IPAM.Plugin)

ippool.apiVersion
  apiVersion <vendor>.org/v3
ippool.kind
  kind IPPool
ippool.metadata.name
  metadata.name (string)
ippool.cidr
  spec.cidr (CIDR string)
ippool.ipipMode
  spec.ipipMode (string; Always is the value shown)
ippool.natOutgoing
  spec.natOutgoing (boolean)
ippool.nodeSelector
  spec.nodeSelector (selector expression string)
  Default: a pool selects all nodes

endpoints
  driven by the CNI mechanism and a network config file, not by an HTTP interface
outbound.readiness-polling
  For each URL in readiness_gates the plugin polls that URL
  continues start-up once all gates are ready
outbound.orchestrator-api-read
  needs read-only access to the Pods resource in all namespaces
  to read pod labels

authentication-1
  makes the plugin present a client certificate (mutual TLS)
  etcd_ca_cert_file sets the CA roots trusted for the server certificate
authentication-2
  given by kubernetes.kubeconfig (recommended) or kubernetes.k8s_api_root
  Required permission with policy type k8s: read-only on Pods in all namespaces
authentication-3
  must run with the policy, profile and workloadendpoint controllers enabled
authentication-4
  ipAddrsNoIpam allows bypassing network policy through IP spoofing
  floatingIPs can let pods receive traffic not meant for them
  Admission control must prevent users from choosing arbitrary addresses for both

errors-1
  Naming an IP pool in the CNI config that does not exist is an error
errors-2
  Pools requested through annotations must already exist
  must exactly match a configured pool; requesting a subset of a pool is unsupported
errors-3
  ipAddrs and ipAddrsNoIpam annotations must not be used together
errors-4
  only one IPv4, one IPv6, or one of each may be given
errors-5
  Requested addresses via ipAddrs must lie within a configured pool
errors-6
  Without feature_control.ip_addrs_no_ipam = true the ipAddrsNoIpam annotation is not active
  without feature_control.floating_ips = true the floatingIPs annotation is not active
errors-7
  Specific-address requests do not work with host-local IPAM
  specific-pool requests do not work with host-local IPAM

limits.log_file_max_size
  100 MB default
limits.log_file_max_age
  30 days default
limits.log_file_max_count
  10 default
limits.num_queues
  default 1
limits.addresses-per-annotation
  one IPv4, one IPv6, or one of each
limits.policy-setup-timeout
  example value 10 seconds
limits.portmap-at-scale
  can make node draining slow on clusters of 100+ nodes with 4000+ services

pools-1
  By default addresses come from all available pools
  only from pools whose nodeSelector selects them
pools-2
  when both carry the annotation the pod's wins
  when only the namespace has it, it applies to every pod there
pools-3
  ipAddrs or ipAddrsNoIpam take priority over ipv4pools/ipv6pools annotations
pools-4
  routes are distributed only when the address falls in a pool in BGP mode
  not in VXLAN mode or outside pools
  where routing must be arranged otherwise
pools-5
  A floating IP must belong to an IP pool for advertisement to work
pools-6
  uses a fixed CIDR per host
  stores allocations locally
  IPv4 from the node's IPv4 pod CIDR if an IPv4 pool is configured, and IPv6 likewise

versioning-1
  cniVersion in the network config selects the CNI spec version
  chaining needs 0.3.0
versioning-2
  to v3.29 from v3.15 or later
  varies by datastore and install method
  Older versions of the command-line admin tool must not be used after upgrade
versioning-3
  UIDs of resources in the <vendor>.org/v3 API group change on upgrade
  Before the upgrade remove owner references with that apiGroup
  then add new owner references with the new UID
  owned resources whose owner reference points to such a resource are garbage collected
versioning-4
  (a) patch the existing installation, apiserver, operator deployment, service account, cluster role and cluster role binding
  (a) podsecuritypolicy
  (b) apply the v3.29 CRDs server-side with forced conflicts
  from {manifest_base}/operator-crds.yaml
  (c) install the chart into the operator namespace
  (d) delete old release secrets in the default namespace, first with a dry run
  the annotation meta.helm.sh/release-namespace is the operator namespace
  the chart formerly lived in the default namespace
versioning-5
  Helm, all other upgrades: apply the v3.29 CRDs as above
  then run the chart upgrade
versioning-6
  download the v3.29 operator manifest from {manifest_base}
  apply it server-side with forced conflicts
versioning-7
  the manifest matching the original method (networking and policy; policy with another networking plugin; policy-only advanced)
  reapply any manual edits
  apply server-side with forced conflicts
  (rolling update)
  verify all pods Running
  install a new admin tool
  its version command reports Cluster Version v3.29.x
  finish the application-layer-policy steps if used
  if upgrading from before v3.14 with host-endpoint pre-upgrade steps, review traffic logs, add needed global policies
  delete the temporary policy allow-all-upgrade
  download the manifest
versioning-8
  using the etcd variants of the manifests (networking and policy; policy with another networking plugin)
  at minimum set the etcd_endpoints value again
  node pods report 1/2 ready
  Manifest install with etcd datastore: same
versioning-9
  the sidecar is versioned with the rest
  an upgraded node agent works with an older sidecar
  Apply the sidecar-injector template for the Istio-style mesh version in use
  from {manifest_base}/alp/
  then perform a rolling update of service deployments
versioning-10
  (a) copy labels of existing all-interfaces host endpoints onto their nodes
  (b) spec.controllers.node.hostEndpoint.autoCreate = Enabled
  (c) delete old all-interfaces host endpoints
  carry the label <vendor>.org/created-by = the controllers component
  have names ending -auto-hep
  have an allow-all profile that permits all traffic when no policy applies
  (b) patching the kube-controllers configuration default
`;

export interface Clause {
  readonly id: string;
  /** Without the backticks that a page may set around names. */
  readonly words: string;
}

export const SPEC_CLAUSES: readonly Clause[] = CLAUSES.trim()
  .split(/\n+(?=\S)/)
  .flatMap(clausesOfRule);

/** A rule and, indented below it, its clauses. */
function clausesOfRule(text: string): readonly Clause[] {
  const [rule = "", ...clauses] = text.split("\n").map((line) => line.trim());
  return clauses.map((words, place) => ({
    id: clauses.length === 1 ? rule : `${rule}.${String.fromCharCode("a".charCodeAt(0) + place)}`,
    words,
  }));
}
