/** What each field means, by its path. Texts of fields that several kinds share are by the path in the shared part. */
import { identity } from "../../identity.ts";

type Descriptions = Readonly<Record<string, string>>;

const METADATA: Descriptions = {
  "": "Name, labels and other data about the resource",
  name: "Name of the resource, unique for its kind (and namespace)",
  namespace: "Namespace of the resource, if its kind is namespaced",
  uid: "Unique identifier, assigned when the resource is created",
  creationTimestamp: "When the resource was created",
  labels: "Labels that selectors match",
  annotations: "Additional data of users and tools",
  generateName: "Prefix of a generated name; kept, but names are not generated",
  resourceVersion: "Revision in the datastore; a write that contains it fails if the resource has changed since",
  generation: "Number of changes of the spec, counted by the orchestrator",
  finalizers: "What must be done before the resource may be deleted",
  ownerReferences: "Resources that this one belongs to",
  deletionTimestamp: "When the deletion was requested",
  deletionGracePeriodSeconds: "How long the deletion may take",
  managedFields: "Which tool set which field, kept by the orchestrator",
  selfLink: "Path of the resource in the orchestrator's API; deprecated",
};

const ENTITY: Descriptions = {
  nets: "Addresses or CIDRs to match",
  notNets: "Addresses or CIDRs not to match",
  selector: "Selector of the endpoints to match",
  notSelector: "Selector of the endpoints not to match",
  namespaceSelector: "Selector of the namespaces whose endpoints match",
  ports: "Ports to match: numbers, ranges such as 1000:2000, or names",
  notPorts: "Ports not to match",
  serviceAccounts: "Service accounts whose endpoints match",
  "serviceAccounts.names": "Names of the service accounts",
  "serviceAccounts.selector": "Selector of the service accounts",
  services: "Service whose endpoints match",
  "services.name": "Name of the service",
  "services.namespace": "Namespace of the service",
};

const RULE: Descriptions = {
  action: "What happens to matching packets",
  ipVersion: "IP version to match",
  protocol: "Protocol to match, by name or number",
  notProtocol: "Protocol not to match",
  icmp: "ICMP messages to match",
  "icmp.type": "Type of the ICMP message",
  "icmp.code": "Code of the ICMP message",
  notICMP: "ICMP messages not to match",
  "notICMP.type": "Type of the ICMP message",
  "notICMP.code": "Code of the ICMP message",
  ...below("source", "Where packets come from", ENTITY),
  ...below("destination", "Where packets go to", ENTITY),
  http: "HTTP requests to match; not supported, and refused",
  metadata: "Data about the rule",
  "metadata.annotations": "Annotations of the rule",
};

const POLICY: Descriptions = {
  spec: "The policy's endpoints and rules",
  "spec.tier": "Tier that the policy is evaluated in; in any other than default, its name must begin with TIER.",
  "spec.order": "Position in the tier: lower numbers are evaluated first, policies without one last, then by name",
  "spec.selector": "Selector of the endpoints that the policy applies to (default: all)",
  "spec.serviceAccountSelector": "Selector of the service accounts whose endpoints the policy applies to",
  "spec.types":
    "Directions that the policy isolates: what its rules do not allow is denied (default: those that it has rules for, or Ingress)",
  ...below("spec.ingress", "Rules for packets to the endpoints, in order", RULE),
  ...below("spec.egress", "Rules for packets from the endpoints, in order", RULE),
};

const NETWORK_SET: Descriptions = {
  spec: "The addresses",
  "spec.nets": "Addresses or CIDRs; rules select them by the labels of the resource",
};

const HOST_PORT: Descriptions = { protocol: "TCP or UDP", port: "Number of the port" };

const ALL_KINDS: Descriptions = {
  apiVersion: "API group and version of the kind",
  kind: "Kind of the resource",
  ...below("metadata", METADATA[""] ?? "", METADATA),
};

const KINDS: Readonly<Record<string, Descriptions>> = {
  IPPool: {
    "": "A range of addresses for workloads and tunnels, cut into blocks that nodes claim",
    spec: "The pool's range and how it is used",
    "spec.cidr": "Range of addresses; cannot change, and must not overlap another pool",
    "spec.ipipMode": "When packets to other nodes are encapsulated with IPIP; IPv4 only",
    "spec.vxlanMode": "When packets to other nodes are encapsulated with VXLAN",
    "spec.natOutgoing": "Masquerade packets from the pool to destinations outside all pools",
    "spec.nodeSelector": "Selector of the nodes that use the pool",
    "spec.blockSize":
      "Prefix length of a block (default: 26 for IPv4, 122 for IPv6, or the whole pool if it is smaller); cannot change",
    "spec.disabled": "Assign no new addresses from the pool",
    "spec.disableBGPExport": "Do not announce the pool's blocks with BGP",
    "spec.allowedUses": "What the addresses may be used for",
  },
  IPReservation: {
    "": "Addresses that are never assigned automatically",
    spec: "The reserved addresses",
    "spec.reservedCIDRs": "Addresses or CIDRs that are not assigned automatically",
  },
  IPAMConfiguration: {
    "": "How blocks are allocated to nodes, for the whole cluster",
    spec: "The configuration",
    "spec.strictAffinity": "Forbid borrowing addresses from other nodes' blocks",
    "spec.autoAllocateBlocks": "Allocate new blocks to nodes automatically",
    "spec.maxBlocksPerHost": "Maximum number of blocks of one pool per node; 0 for the default",
  },
  ClusterInformation: {
    "": "Identity of the cluster, and whether its datastore may be used",
    spec: "The cluster's information",
    "spec.clusterGUID": "Unique identifier of the cluster",
    "spec.clusterType": "Types of the cluster, separated by commas",
    "spec.variant": "Variant of the product",
    [`spec.${identity.product}Version`]: "Release that last initialized or upgraded the datastore",
    "spec.datastoreReady": "Only false means that the datastore must not be used",
  },
  Node: {
    "": "A host of the network; the node selectors of pools match its labels",
    spec: "The node's addresses",
    "spec.bgp": "How the node is reached, and its part in BGP",
    "spec.bgp.asNumber": "AS number of the node, such as 64512 or 1.10",
    "spec.bgp.ipv4Address": "IPv4 address of the node, with the prefix length of its network",
    "spec.bgp.ipv6Address": "IPv6 address of the node, with the prefix length of its network",
    "spec.bgp.ipv4IPIPTunnelAddr": "IPv4 address of the node's IPIP tunnel",
    "spec.bgp.routeReflectorClusterID": "Makes the node a route reflector of this cluster ID",
    "spec.ipv4VXLANTunnelAddr": "IPv4 address of the node's VXLAN tunnel",
    "spec.vxlanTunnelMACAddr": "MAC address of the node's IPv4 VXLAN tunnel",
    "spec.ipv6VXLANTunnelAddr": "IPv6 address of the node's VXLAN tunnel",
    "spec.vxlanTunnelMACAddrV6": "MAC address of the node's IPv6 VXLAN tunnel",
    "spec.orchRefs": "The node as orchestrators know it",
    "spec.orchRefs.nodeName": "Name of the node in the orchestrator",
    "spec.orchRefs.orchestrator": "The orchestrator",
    "spec.wireguard": "WireGuard of the node",
    "spec.wireguard.interfaceIPv4Address": "IPv4 address of the node's WireGuard interface",
    "spec.wireguard.interfaceIPv6Address": "IPv6 address of the node's WireGuard interface",
    "spec.addresses": "All addresses of the node",
    "spec.addresses.address": "An address of the node, with or without a prefix length",
    "spec.addresses.type": "What kind of address it is",
  },
  Profile: {
    "": "Labels and rules that endpoints inherit, such as those of their namespace",
    spec: "The profile's labels and rules",
    ...below("spec.ingress", "Rules for packets to the endpoints, in order", RULE),
    ...below("spec.egress", "Rules for packets from the endpoints, in order", RULE),
    "spec.labelsToApply": "Labels that the endpoints get",
  },
  WorkloadEndpoint: {
    "": "One interface of a workload: its addresses, and its interface on the host",
    spec: "The endpoint",
    "spec.orchestrator": "Orchestrator of the workload",
    "spec.workload": "Name of the workload",
    "spec.node": "Node that the workload runs on",
    "spec.containerID": "ID of the workload's container",
    "spec.pod": "Name of the workload's pod",
    "spec.endpoint": "Name of the interface in the workload",
    "spec.serviceAccountName": "Service account of the workload",
    "spec.ipNetworks": "Addresses of the endpoint, each with its full prefix length",
    "spec.ipNATs": "Addresses under which the endpoint can be reached from outside",
    "spec.ipNATs.internalIP": "Address of the endpoint",
    "spec.ipNATs.externalIP": "Address that is translated to it",
    "spec.ipv4Gateway": "IPv4 gateway of the workload",
    "spec.ipv6Gateway": "IPv6 gateway of the workload",
    "spec.profiles": "Profiles that the endpoint inherits from",
    "spec.interfaceName": "Name of the endpoint's interface on the host",
    "spec.mac": "MAC address of the workload's interface",
    "spec.ports": "Named ports and host ports of the workload",
    "spec.ports.name": "Name of the port",
    "spec.ports.protocol": "Protocol of the port",
    "spec.ports.port": "Port of the workload",
    "spec.ports.hostPort": "Port of the host that is forwarded to it",
    "spec.ports.hostIP": "Address of the host to which the host port is limited",
    "spec.allowSpoofedSourcePrefixes":
      "CIDRs that the workload may send from beside its own addresses; written by ADD from the pod's annotation allowedSourcePrefixes",
  },
  NetworkPolicy: {
    "": "Rules for the endpoints of one namespace",
    ...POLICY,
  },
  GlobalNetworkPolicy: {
    "": "Rules for the endpoints of all namespaces, and for host endpoints",
    ...POLICY,
    "spec.namespaceSelector": "Selector of the namespaces whose endpoints the policy applies to",
    "spec.doNotTrack":
      "Evaluate the rules at host endpoints before connection tracking, which allowed packets skip; needs applyOnForward",
    "spec.preDNAT": "Evaluate the rules at host endpoints before destinations are translated; needs applyOnForward",
    "spec.applyOnForward": "Also apply the rules to packets that a host endpoint forwards",
  },
  NetworkSet: {
    "": "Addresses that rules of policies select by labels, as those of a workload in the namespace",
    ...NETWORK_SET,
  },
  GlobalNetworkSet: { "": "Addresses that rules of policies select by labels, in no namespace", ...NETWORK_SET },
  Tier: {
    "": "A group of policies that is evaluated before or after other groups",
    spec: "The tier's position and its default action",
    "spec.order":
      "Position: lower numbers are evaluated first, tiers without one last (the built-in tier default has 1000000)",
    "spec.defaultAction":
      "What happens to packets of endpoints with policies in the tier if no rule of these matches: Pass continues with the next tier",
  },
  HostEndpoint: {
    "": "An interface of a host, or all of them, that policies apply to",
    spec: "The interface",
    "spec.node": "Name of the host's node",
    "spec.interfaceName": 'Name of the interface, or "*" for all interfaces that are not those of workloads',
    "spec.expectedIPs":
      "Addresses of the interface; they find it if it has no name here, and rules select them by labels",
    "spec.profiles": "Profiles that the endpoint inherits from",
    "spec.ports": "Named ports of the host",
    "spec.ports.name": "Name of the port",
    "spec.ports.protocol": "Protocol of the port",
    "spec.ports.port": "Port of the host",
  },
  NodeAgentConfiguration: {
    "": "Settings of the node agent: default for all nodes, node.NAME overrides single fields for one node",
    spec: "The settings; what is absent has its built-in value",
    "spec.defaultEndpointToHostAction":
      "What happens to packets from workloads to their own host that their policies allow (default: Accept); Return leaves them to the host's other rules",
    ...below(
      "spec.failsafeInboundHostPorts",
      "Ports of hosts that no policy closes (default: SSH, DHCP, BGP, etcd, the API server)",
      HOST_PORT,
    ),
    ...below(
      "spec.failsafeOutboundHostPorts",
      "Ports of others that no policy closes for hosts (default: DNS, DHCP, BGP, etcd, the API server)",
      HOST_PORT,
    ),
    "spec.healthEnabled": "Serve /liveness and /readiness (default: true)",
    "spec.healthHost": "Address to serve them at (default: localhost)",
    "spec.healthPort": "Port to serve them at (default: 9099)",
    "spec.prometheusMetricsEnabled": "Serve metrics for Prometheus (default: false)",
    "spec.prometheusMetricsHost": "Address to serve them at (default: all addresses)",
    "spec.prometheusMetricsPort": "Port to serve them at (default: 9091)",
    "spec.tablesRefreshInterval":
      "How often the rules in the kernel are compared with the expected ones (default: 180s; 0s: never)",
  },
};

/** `path`: "" for the kind itself, "spec.cidr". */
export function descriptionOf(kind: string, path: string): string | undefined {
  return KINDS[kind]?.[path] ?? ALL_KINDS[path];
}

function below(path: string, own: string, inner: Descriptions): Descriptions {
  const rows = Object.entries(inner).filter(([name]) => name !== "");
  return { [path]: own, ...Object.fromEntries(rows.map(([name, text]) => [`${path}.${name}`, text])) };
}
