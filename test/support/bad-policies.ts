/** Resources about policy that are refused: by the codec of the model, and by the API server. */
export interface BadResource {
  readonly what: string;
  readonly kind: string;
  readonly name?: string;
  readonly spec: Readonly<Record<string, unknown>>;
  /** What the codec complains about. */
  readonly path: string;
  readonly message: string;
  /** The words of the API server, if they are not the same: its own checks have their own. */
  readonly onServer?: string;
}

const POLICY = "NetworkPolicy";
const GLOBAL = "GlobalNetworkPolicy";
const allow = (match: object) => ({ ingress: [{ action: "Allow", ...match }] });
const PORTS = 'needs "protocol" to be TCP, UDP or SCTP; set it';
const ICMP = 'needs "protocol" to be ICMP or ICMPv6; set it';
const NO_PORT = 'is not a port; use a number from 0 to 65535, a range like "1000:2000", or a name';
const NO_PROTOCOL = "is not a protocol; use TCP, UDP, ICMP, ICMPv6, SCTP, UDPLite or a number from 1 to 255";
const port = (value: unknown, onServer: string): BadResource => ({
  what: `the port ${JSON.stringify(value)}`,
  kind: POLICY,
  spec: allow({ protocol: "TCP", destination: { ports: [80, value] } }),
  path: "spec.ingress[0].destination.ports[1]",
  message: NO_PORT,
  onServer,
});
const protocol = (value: unknown, onServer: string): BadResource => ({
  what: `the protocol ${JSON.stringify(value)}`,
  kind: POLICY,
  spec: allow({ protocol: value }),
  path: "spec.ingress[0].protocol",
  message: NO_PROTOCOL,
  onServer,
});

export const BAD_POLICIES: readonly BadResource[] = [
  {
    what: "http",
    kind: POLICY,
    spec: allow({ http: { methods: ["GET"] } }),
    path: "spec.ingress[0].http",
    message: "is not supported: rules match addresses, protocols and ports only; remove it",
  },
  {
    what: "an unknown action",
    kind: POLICY,
    spec: { egress: [{ action: "Reject" }] },
    path: "spec.egress[0].action",
    message: 'is not allowed; use "Allow", "Deny", "Log", "Pass"',
    onServer: 'spec.egress[0].action: Unsupported value: "Reject": supported values: "Allow", "Deny", "Log", "Pass"',
  },
  {
    what: "ports without a protocol",
    kind: POLICY,
    spec: allow({ source: { notPorts: [80] } }),
    path: "spec.ingress[0].source.notPorts",
    message: PORTS,
  },
  {
    what: "ports of ICMP",
    kind: GLOBAL,
    spec: allow({ protocol: "ICMP", destination: { ports: [80] } }),
    path: "spec.ingress[0].destination.ports",
    message: PORTS,
  },
  port(65_536, "should be less than or equal to 65535"),
  port(-1, "should be greater than or equal to 0"),
  port("a b", "should match"),
  port("", "should match"),
  port("1:2:3", "should match"),
  port("80-90", "should match"),
  protocol("ICMPv5", "should match"),
  protocol(0, "should be greater than or equal to 1"),
  protocol(256, "should be less than or equal to 255"),
  {
    what: "ICMP types of TCP",
    kind: POLICY,
    spec: allow({ protocol: "TCP", icmp: { type: 8 } }),
    path: "spec.ingress[0].icmp",
    message: ICMP,
  },
  {
    what: "ICMP types without a protocol",
    kind: POLICY,
    spec: allow({ notICMP: { type: 8 } }),
    path: "spec.ingress[0].notICMP",
    message: ICMP,
  },
  {
    what: "an ICMP code without a type",
    kind: POLICY,
    spec: allow({ protocol: 58, icmp: { code: 1 } }),
    path: "spec.ingress[0].icmp",
    message: "has no type; add the type of the messages, for example 8",
  },
  {
    what: "the ICMP type 255",
    kind: POLICY,
    spec: allow({ protocol: "ICMP", icmp: { type: 255 } }),
    path: "spec.ingress[0].icmp.type",
    message: "is out of range; use a whole number from 0 to 254",
  },
  {
    what: "IP version 5",
    kind: POLICY,
    spec: allow({ ipVersion: 5 }),
    path: "spec.ingress[0].ipVersion",
    message: "is not allowed; use 4, 6",
    onServer: 'spec.ingress[0].ipVersion: Unsupported value: 5: supported values: "4", "6"',
  },
  {
    what: "a network of the other family",
    kind: POLICY,
    spec: allow({ ipVersion: 6, source: { nets: ["fd00::/8", "10.0.0.0/8"] } }),
    path: "spec.ingress[0].source.nets[1]",
    message: 'is not an IPv6 network, as "ipVersion" says; correct one of them',
    onServer: 'spec.ingress[0].source.nets: Invalid value: contains a network that is not of the "ipVersion"',
  },
  {
    what: "host bits of a network",
    kind: POLICY,
    spec: allow({ source: { notNets: ["10.0.0.1/24"] } }),
    path: "spec.ingress[0].source.notNets[0]",
    message: 'has host bits; use "10.0.0.0/24"',
  },
  {
    what: "a selector with a syntax error in a rule",
    kind: POLICY,
    spec: allow({ source: { selector: "app = a" } }),
    path: "spec.ingress[0].source.selector",
    message: "is not a valid selector",
  },
  {
    what: "a selector with a syntax error",
    kind: GLOBAL,
    spec: { namespaceSelector: "has(" },
    path: "spec.namespaceSelector",
    message: "is not a valid selector",
  },
  {
    what: "a service and a selector",
    kind: POLICY,
    spec: allow({ destination: { services: { name: "web" }, selector: "all()", ports: [] } }),
    path: "spec.ingress[0].destination.services",
    message: "cannot be combined with selector, ports; use a rule for each",
    onServer: "spec.ingress[0].destination.services: Invalid value: cannot be combined with selector, notSelector",
  },
  {
    what: "a service without a namespace in a global policy",
    kind: GLOBAL,
    spec: allow({ destination: { services: { name: "web" } } }),
    path: "spec.ingress[0].destination.services",
    message: "has no namespace; add the namespace of the service",
  },
  {
    what: "an unknown field of a rule",
    kind: POLICY,
    spec: allow({ source: { domains: ["example.org"] } }),
    path: "spec.ingress[0].source.domains",
    message: "is not a known field",
    onServer: 'unknown field "spec.ingress[0].source.domains"',
  },
  {
    what: "a type that is not a direction",
    kind: POLICY,
    spec: { types: ["Ingress", "Forward"] },
    path: "spec.types[1]",
    message: 'is not allowed; use "Ingress", "Egress"',
    onServer: 'spec.types[1]: Unsupported value: "Forward"',
  },
  {
    what: "a name without the name of its tier",
    kind: POLICY,
    spec: { tier: "security" },
    path: "metadata.name",
    message: 'does not begin with the name of its tier; use "security.bad"',
  },
  {
    what: "doNotTrack and preDNAT",
    kind: GLOBAL,
    spec: { doNotTrack: true, preDNAT: true, applyOnForward: true },
    path: "spec.preDNAT",
    message: "cannot be combined with doNotTrack; use two policies",
  },
  ...["doNotTrack", "preDNAT"].map((field) => ({
    what: `${field} without applyOnForward`,
    kind: GLOBAL,
    spec: { [field]: true },
    path: `spec.${field}`,
    message: "needs applyOnForward; set applyOnForward: true",
  })),
  {
    what: "preDNAT with egress rules",
    kind: GLOBAL,
    spec: { preDNAT: true, applyOnForward: true, egress: [{ action: "Allow" }] },
    path: "spec.egress",
    message: "cannot be combined with preDNAT, which acts on incoming packets only; remove the egress rules",
  },
  {
    what: "a field of global policies in a namespaced one",
    kind: POLICY,
    spec: { doNotTrack: true },
    path: "spec.doNotTrack",
    message: "is not a known field",
    onServer: 'unknown field "spec.doNotTrack"',
  },
  {
    what: "a network that is not one",
    kind: "NetworkSet",
    spec: { nets: ["10.0.0.0/8", "everything"] },
    path: "spec.nets[1]",
    message: 'is neither an IP address nor a CIDR; use for example "10.0.0.1" or "10.0.0.0/24"',
  },
  {
    what: "host bits",
    kind: "GlobalNetworkSet",
    spec: { nets: ["fd00::1/64"] },
    path: "spec.nets[0]",
    message: 'has host bits; use "fd00::/64"',
  },
  {
    what: "the default tier with Pass",
    kind: "Tier",
    name: "default",
    spec: { defaultAction: "Pass" },
    path: "spec.defaultAction",
    message: 'is not allowed for the tier "default"; use Deny',
  },
  {
    what: "an unknown default action",
    kind: "Tier",
    spec: { defaultAction: "Allow" },
    path: "spec.defaultAction",
    message: 'is not allowed; use "Deny", "Pass"',
    onServer: 'Unsupported value: "Allow": supported values: "Deny", "Pass"',
  },
  {
    what: "a host endpoint without a node",
    kind: "HostEndpoint",
    spec: { interfaceName: "*" },
    path: "spec.node",
    message: "is missing; add the name of the host's node",
  },
  {
    what: "a host endpoint without an interface",
    kind: "HostEndpoint",
    spec: { node: "n" },
    path: "spec.interfaceName",
    message: 'is missing, and expectedIPs too; add one of them, or "*" for all interfaces',
  },
  {
    what: "an interface name that Linux does not accept",
    kind: "HostEndpoint",
    spec: { node: "n", interfaceName: "an-interface-too-long" },
    path: "spec.interfaceName",
    message: 'is not an interface name; use 1 to 15 letters, digits, "_", "." or "-", or "*"',
  },
  {
    what: "an expected network",
    kind: "HostEndpoint",
    spec: { node: "n", expectedIPs: ["10.0.0.0/24"] },
    path: "spec.expectedIPs[0]",
    message: 'is not an IP address; use for example "10.0.0.1" or "fd00::1"',
  },
  {
    what: "a port of ICMP",
    kind: "HostEndpoint",
    spec: { node: "n", interfaceName: "*", ports: [{ name: "web", protocol: "ICMP", port: 80 }] },
    path: "spec.ports[0].protocol",
    message: "is not a protocol with ports; use TCP, UDP or SCTP",
    onServer: 'spec.ports[0].protocol: Unsupported value: "ICMP": supported values: "6", "17"',
  },
  {
    what: "a configuration of no node",
    kind: "NodeAgentConfiguration",
    name: "node-1",
    spec: {},
    path: "metadata.name",
    message: 'applies to no node; use "default" for all nodes, or "node.node-1" for the node of that name',
  },
  {
    what: "a duration without a unit",
    kind: "NodeAgentConfiguration",
    name: "default",
    spec: { tablesRefreshInterval: "180" },
    path: "spec.tablesRefreshInterval",
    message: 'is not a duration; use for example "180s", or "0s" for never',
  },
  {
    what: "port 0",
    kind: "NodeAgentConfiguration",
    name: "default",
    spec: { failsafeInboundHostPorts: [{ protocol: "TCP", port: 0 }] },
    path: "spec.failsafeInboundHostPorts[0].port",
    message: "is not a port; use a whole number from 1 to 65535",
  },
];

/** Of each kind one with everything that it can have. */
export const GOOD_POLICIES: readonly Pick<BadResource, "kind" | "name" | "spec">[] = [
  {
    kind: POLICY,
    name: "security.web",
    spec: {
      tier: "security",
      order: 2.5,
      selector: "app == 'web'",
      serviceAccountSelector: "role in {'a', 'b'}",
      types: ["Ingress", "Egress"],
      ingress: [
        {
          action: "Allow",
          ipVersion: 4,
          protocol: "TCP",
          source: { nets: ["10.0.0.0/8"], notNets: ["10.1.0.0/16"], selector: "has(app)", notSelector: "app == 'x'" },
          destination: { ports: [80, "1000:2000", "web", "443"], notPorts: [81] },
          metadata: { annotations: { why: "the web" } },
        },
        { action: "Log", notProtocol: 17, source: { namespaceSelector: "global()" } },
        { action: "Pass", protocol: "icmp", icmp: { type: 8, code: 0 } },
        { action: "Deny", protocol: 58, notICMP: { type: 128 }, source: { serviceAccounts: { names: ["a"] } } },
      ],
      egress: [{ action: "Allow", destination: { services: { name: "dns", namespace: "kube-system" } } }],
    },
  },
  { kind: POLICY, name: "empty", spec: {} },
  {
    kind: GLOBAL,
    name: "hosts",
    spec: { applyOnForward: true, preDNAT: true, namespaceSelector: "all()", ingress: [{ action: "Allow" }] },
  },
  { kind: GLOBAL, name: "untracked", spec: { applyOnForward: true, doNotTrack: true, egress: [{ action: "Deny" }] } },
  { kind: "NetworkSet", name: "partners", spec: { nets: ["192.0.2.0/24", "2001:db8::1"] } },
  { kind: "GlobalNetworkSet", name: "partners", spec: { nets: [] } },
  { kind: "Tier", name: "security", spec: { order: 10.5, defaultAction: "Pass" } },
  { kind: "Tier", name: "default", spec: { order: 1_000_000 } },
  {
    kind: "HostEndpoint",
    name: "node-1-eth0",
    spec: {
      node: "node-1",
      interfaceName: "eth0",
      expectedIPs: ["192.0.2.1", "2001:db8::1"],
      profiles: ["open"],
      ports: [{ name: "ssh", protocol: "TCP", port: 22 }],
    },
  },
  {
    kind: "NodeAgentConfiguration",
    name: "node.node-1",
    spec: {
      defaultEndpointToHostAction: "Return",
      failsafeInboundHostPorts: [{ port: 22 }],
      failsafeOutboundHostPorts: [{ protocol: "udp", port: 53 }],
      healthEnabled: false,
      prometheusMetricsPort: 9091,
      tablesRefreshInterval: "90s",
    },
  },
];
