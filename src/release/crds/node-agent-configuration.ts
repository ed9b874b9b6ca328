/** NodeAgentConfiguration. The checks of the model are in `src/model/node-agent-configuration.ts`, with the messages. */
import { identity } from "../../identity.ts";
import {
  DETECTION_EXAMPLES,
  DETECTION_PATTERN,
  ipv4DetectionField,
  ipv6DetectionField,
  NOT_A_DETECTION,
} from "../../model/address-detection.ts";
import {
  IS_LOOPBACK_PREFIX,
  interfacePrefixField,
  LOOPBACK_PREFIXES,
  NOT_A_PREFIX_LIST,
  PREFIX_LIST_PATTERN,
} from "../../model/interface-prefix.ts";
import {
  OF_ALL_NODES_MESSAGE,
  PROBE_PORT_MESSAGE,
  SETTINGS_OF_ALL_NODES,
} from "../../model/node-agent-configuration.ts";
import { PROBE_PORT } from "../../model/probe-port.ts";
import { OF_ALL_NODES, OF_ONE_NODE, settingsNameMessage } from "../../model/settings-name.ts";
import { celText, formatted, text } from "./cel.ts";
import type { CelRule } from "./crd-schema.ts";
import { below, type CheckedFields, type Descriptions, type ReleasedKinds } from "./kind.ts";

/** Of all settings of nodes, BGPConfiguration too. A rule about the name cannot name a field path. */
export const SETTINGS_NAME_RULE: CelRule = {
  rule: `self.metadata.name == '${OF_ALL_NODES}' || self.metadata.name.startsWith('${OF_ONE_NODE}')`,
  message: "metadata.name applies to no node",
  messageExpression: formatted(`metadata.name: "%s" ${settingsNameMessage("%s")}`, [
    "self.metadata.name",
    "self.metadata.name",
  ]),
};

const NODE_AGENT_RULES: readonly CelRule[] = [
  ...SETTINGS_OF_ALL_NODES.map((field) => ({
    rule: `self.metadata.name == '${OF_ALL_NODES}' || !has(self.spec) || !has(self.spec.${field})`,
    message: `spec.${field}: ${OF_ALL_NODES_MESSAGE}`,
  })),
  {
    rule: `!has(self.spec) || !has(self.spec.vxlanPort) || self.spec.vxlanPort != ${PROBE_PORT}`,
    message: `spec.vxlanPort: ${PROBE_PORT_MESSAGE}`,
  },
];

const HOST_PORT: Descriptions = { protocol: "TCP or UDP", port: "Number of the port" };

export const NODE_AGENT_CONFIGURATION: ReleasedKinds = {
  NodeAgentConfiguration: {
    columns: [
      { name: "Endpoint To Host", path: ".spec.defaultEndpointToHostAction" },
      { name: "Metrics", path: ".spec.prometheusMetricsEnabled", type: "boolean" },
    ],
    rules: { "": [SETTINGS_NAME_RULE, ...NODE_AGENT_RULES] },
    descriptions: {
      "": "Settings of the node agent: default for all nodes, node.NAME overrides single fields for one node",
      spec: "The settings; what is absent has its built-in value",
      "spec.bgp":
        "Exchange routes with other nodes and routers by BGP (default: Enabled); Disabled gives nodes of the same subnet static routes instead",
      "spec.defaultEndpointToHostAction":
        "What happens to packets from workloads to their own host that their policies allow (default: Accept); Return leaves them to the host's other rules",
      "spec.denyAction":
        "What happens to packets that policy denies (default: Drop); Reject tells the sender at once, with a TCP reset or an ICMP error, so that it need not wait",
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
      "spec.flowDeniedPerSecond":
        "How many packets that a rule denies are recorded in a second, for each rule (default: 10); the others are counted",
      "spec.flowHistoryAge": "How long flows are kept on the node (default: 24h)",
      "spec.flowHistoryMegabytes": "How large the history of flows on the node becomes at most (default: 100)",
      "spec.flowLogFile":
        'File on the node that flows are also written to, a line of JSON each, rotated (default: "None")',
      "spec.flows":
        "Record who talks to whom, and which rule decided (default: Disabled); Enabled switches counters and times of the kernel's connection table on",
      "spec.flowsPerSecond":
        "How many connections are recorded one by one in a second (default: 500); more are only in the roll-ups",
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
      "spec.openConnections":
        "What a change of policy means for connections that are open (default: Keep); End ends those that it denies: TCP by a reset to both ends",
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
  },
};

const LONGEST_DETECTION = 256;

export const NODE_AGENT_FIELDS: CheckedFields = [
  [ipv4DetectionField, text(LONGEST_DETECTION, detectionRules(4))],
  [ipv6DetectionField, text(LONGEST_DETECTION, detectionRules(6))],
  [
    interfacePrefixField,
    text(LONGEST_DETECTION, [
      { rule: `self.matches(${celText(PREFIX_LIST_PATTERN.source)})`, message: NOT_A_PREFIX_LIST },
      {
        rule: `!self.split(',').exists(part, part.trim() in [${LOOPBACK_PREFIXES.map((each) => `'${each}'`).join(", ")}])`,
        message: IS_LOOPBACK_PREFIX,
      },
    ]),
  ],
];

/** Whether a regular expression is one cannot be said in CEL; the agent reports it. */
function detectionRules(family: 4 | 6): readonly CelRule[] {
  const { cidr, address } = DETECTION_EXAMPLES[family];
  const each = "self.substring(5).split(',').all(part, isCIDR(part.trim())";
  return [
    { rule: `self.matches(${celText(DETECTION_PATTERN.source)})`, message: NOT_A_DETECTION },
    {
      rule: `!self.startsWith('cidr=') || ${each} && cidr(part.trim()).ip().family() == ${family} && cidr(part.trim()) == cidr(part.trim()).masked())`,
      message: `has a part that is not an IPv${family} CIDR; use for example "cidr=${cidr}"`,
    },
    {
      rule: `!self.startsWith('can-reach=') || (isIP(self.substring(10)) ? ip(self.substring(10)).family() == ${family} : self.matches(${celText("^can-reach=[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?[.]?$")}))`,
      message: `has a destination that is neither an IPv${family} address nor a host name; use for example "can-reach=${address}"`,
    },
  ];
}
