import { identity } from "../../identity.ts";
import { below, type Descriptions, type KindDescriptions } from "./fields.ts";

const HOST_PORT: Descriptions = { protocol: "TCP or UDP", port: "Number of the port" };

export const NODE_AGENT_CONFIGURATION: KindDescriptions = {
  NodeAgentConfiguration: {
    "": "Settings of the node agent: default for all nodes, node.NAME overrides single fields for one node",
    spec: "The settings; what is absent has its built-in value",
    "spec.bgp":
      "Exchange routes with other nodes and routers by BGP (default: Enabled); Disabled gives nodes of the same subnet static routes instead",
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
    "spec.interfacePrefix": `How names of interfaces of workloads begin, separated by commas: "veth" if the plugin "ptp" connects pods (default: ${identity.interfacePrefix}, which always counts)`,
    "spec.ipv4AddressDetection":
      "How the agent finds the IPv4 address of its node: first-found, kubernetes-internal-ip, interface=REGEX, skip-interface=REGEX, can-reach=DESTINATION, cidr=CIDR or none (default: first-found)",
    "spec.ipv6AddressDetection":
      "How the agent finds the IPv6 address of its node: first-found, kubernetes-internal-ip, interface=REGEX, skip-interface=REGEX, can-reach=DESTINATION, cidr=CIDR or none (default: first-found)",
    "spec.namespacePolicyAddresses":
      "How many addresses the selectors, services, named ports and long lists of the NetworkPolicies of a namespace may have together (default: 500000)",
    "spec.namespacePolicyLists":
      "How many different selectors, services, named ports and long lists the NetworkPolicies of a namespace may have; a policy a quarter of it (default: 4000)",
    "spec.namespacePolicyRules":
      "How many rules of the kernel the NetworkPolicies of a namespace may need; a policy a quarter of it (default: 40000)",
    "spec.prometheusMetricsEnabled": "Serve metrics for Prometheus (default: false)",
    "spec.prometheusMetricsHost": "Address to serve them at (default: all addresses)",
    "spec.prometheusMetricsPort": "Port to serve them at (default: 9091)",
    "spec.routing":
      "Whether the agent sets routes, tunnels and NAT (default: Enabled); Disabled leaves them to another networking plugin or to the network between nodes",
    "spec.tablesRefreshInterval":
      "How often the rules in the kernel are compared with the expected ones (default: 180s; 0s: never)",
    "spec.vxlanChecksumOffload":
      "Whether VXLAN devices leave the checksums of the packets inside to the network card (default: Auto); Auto turns it off if agents find that only TCP fails between them, On and Off decide it",
    "spec.vxlanPort":
      "UDP port of VXLAN (default: 4789); only in default: it is the same on all nodes, and a change interrupts the tunnels for a moment",
    "spec.vxlanVNI":
      "VXLAN network identifier (default: 4096); only in default: it is the same on all nodes, and a change interrupts the tunnels for a moment",
  },
};
