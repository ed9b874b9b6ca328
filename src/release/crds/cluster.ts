/** ClusterInformation and Node. */
import { identity } from "../../identity.ts";
import type { ReleasedKinds } from "./kind.ts";

export const CLUSTER_KINDS: ReleasedKinds = {
  ClusterInformation: {
    columns: [
      { name: "Cluster GUID", path: ".spec.clusterGUID" },
      { name: "Type", path: ".spec.clusterType" },
      { name: "Version", path: `.spec.${identity.product}Version` },
      { name: "Ready", path: ".spec.datastoreReady", type: "boolean" },
    ],
    descriptions: {
      "": "Identity of the cluster, and whether its datastore may be used",
      spec: "The cluster's information",
      "spec.clusterGUID": "Unique identifier of the cluster",
      "spec.clusterType": "Types of the cluster, separated by commas",
      "spec.variant": "Variant of the product",
      [`spec.${identity.product}Version`]: "Release that last initialized or upgraded the datastore",
      "spec.kubeSystemUID": "UID of the namespace kube-system of the cluster that the datastore belongs to",
      "spec.datastoreReady": "Only false means that the datastore must not be used",
    },
  },
  Node: {
    orchestratorObject: "Node",
    descriptions: {
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
      "spec.podCIDRs": "Networks of the node's pods, if they get their addresses from host-local with usePodCidr",
      "spec.orchRefs": "The node as orchestrators know it",
      "spec.orchRefs.nodeName": "Name of the node in Kubernetes",
      "spec.orchRefs.orchestrator": "The orchestrator",
      "spec.wireguard": "WireGuard of the node",
      "spec.wireguard.interfaceIPv4Address": "IPv4 address of the node's WireGuard interface",
      "spec.wireguard.interfaceIPv6Address": "IPv6 address of the node's WireGuard interface",
      "spec.addresses": "All addresses of the node",
      "spec.addresses.address": "An address of the node, with or without a prefix length",
      "spec.addresses.type": "What kind of address it is",
    },
  },
};
