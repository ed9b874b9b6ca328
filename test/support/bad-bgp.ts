/** Resources of BGP that are refused: by the codec of the model, and by the API server. And those that both accept. */
import type { BadResource } from "./bad-resource.ts";

const CONFIGURATION = "BGPConfiguration";
const PEER = "BGPPeer";
const FILTER = "BGPFilter";
const NOT_AN_AS_NUMBER = 'is not an AS number; use a whole number from 1 to 4294967295, or dotted notation like "1.10"';
const ROUTER = { peerIP: "192.0.2.1", asNumber: 64_512 };

const configuration = (
  what: string,
  spec: BadResource["spec"],
  field: string,
  more: Pick<BadResource, "message"> & Partial<BadResource>,
): BadResource => ({ what, kind: CONFIGURATION, name: "default", spec, path: `spec.${field}`, ...more });

const peer = (
  what: string,
  spec: BadResource["spec"],
  field: string,
  more: Pick<BadResource, "message"> & Partial<BadResource>,
): BadResource => ({ what, kind: PEER, spec, path: `spec.${field}`, ...more });

const filter = (what: string, rule: object, field: string, message: string): BadResource => ({
  what,
  kind: FILTER,
  spec: { importV4: [{ action: "Accept" }, { action: "Reject", ...rule }] },
  path: `spec.importV4[1].${field}`,
  message,
});

export const BAD_BGP: readonly BadResource[] = [
  {
    what: "a name that no node has",
    kind: CONFIGURATION,
    name: "rack-1",
    spec: {},
    path: "metadata.name",
    message: 'applies to no node; use "default" for all nodes, or "node.rack-1" for the node of that name',
  },
  ...["nodeToNodeMeshEnabled", "bindMode", "serviceClusterIPs", "ignoredInterfaces"].map(
    (field): BadResource => ({
      what: `${field} for one node`,
      kind: CONFIGURATION,
      name: "node.a",
      spec: {
        [field]: {
          nodeToNodeMeshEnabled: true,
          bindMode: "NodeIP",
          serviceClusterIPs: [{ cidr: "10.96.0.0/12" }],
          ignoredInterfaces: ["docker*"],
        }[field],
      },
      path: `spec.${field}`,
      message: 'applies to all nodes; move it to "default"',
    }),
  ),
  {
    what: "an AS number for one node",
    kind: CONFIGURATION,
    name: "node.a",
    spec: { asNumber: 64_512 },
    path: "spec.asNumber",
    message: 'applies to all nodes; move it to "default", or set spec.bgp.asNumber of the Node',
  },
  {
    what: "a password for one node",
    kind: CONFIGURATION,
    name: "node.a",
    spec: { nodeMeshPassword: { file: "/etc/mesh" } },
    path: "spec.nodeMeshPassword.file",
    message: 'applies to all nodes; move it to "default"',
    onServer: 'spec.nodeMeshPassword: applies to all nodes; move it to "default"',
  },
  configuration("an AS number of 0", { asNumber: 0 }, "asNumber", {
    message: NOT_AN_AS_NUMBER,
    onServer: "spec.asNumber: Invalid value: 0",
  }),
  configuration("a port of 70000", { listenPort: 70_000 }, "listenPort", {
    message: "is not a port; use a whole number from 1 to 65535",
  }),
  configuration(
    "a network with host bits",
    { serviceClusterIPs: [{ cidr: "10.96.0.1/12" }] },
    "serviceClusterIPs[0].cidr",
    {
      message: 'has host bits; use "10.96.0.0/12"',
    },
  ),
  configuration("a community of one number", { communities: [{ name: "a", value: "100" }] }, "communities[0].value", {
    message: "is not a community; use two numbers up to 65535",
  }),
  configuration(
    "a standard community beyond 16 bits",
    { communities: [{ name: "a", value: "65536:1" }] },
    "communities[0].value",
    { message: "is not a community; use two numbers up to 65535" },
  ),
  configuration(
    "a community without a definition",
    {
      communities: [{ name: "known", value: "64512:1" }],
      prefixAdvertisements: [{ cidr: "10.0.0.0/8", communities: ["known", "other"] }],
    },
    "prefixAdvertisements[0].communities[1]",
    {
      message: "is neither a community nor the name of one; add it to communities",
      onServer:
        "spec.prefixAdvertisements: Invalid value: is neither a community nor the name of one; add it to communities",
    },
  ),
  configuration(
    "a password without a mesh",
    { nodeToNodeMeshEnabled: false, nodeMeshPassword: { file: "/etc/password" } },
    "nodeToNodeMeshEnabled",
    { message: "ends the mesh that nodeMeshPassword is for; remove one of the two" },
  ),
  configuration("an empty password", { nodeMeshPassword: {} }, "nodeMeshPassword.secretKeyRef", {
    message: "is missing, and file too; add one of them",
  }),
  configuration("an endless restart time", { nodeMeshMaxRestartTime: "2h" }, "nodeMeshMaxRestartTime", {
    message: 'is not a restart time; use "1s" to "4095s", for example "120s" or "2m"',
  }),
  configuration("a restart time without a unit", { nodeMeshMaxRestartTime: "120" }, "nodeMeshMaxRestartTime", {
    message: 'is not a restart time; use "1s" to "4095s", for example "120s" or "2m"',
  }),
  configuration("an interface with a blank", { ignoredInterfaces: ["eth 0"] }, "ignoredInterfaces[0]", {
    message: "is not the name of an interface",
  }),
  ...["localWorkloadPeeringIPV4", "localWorkloadPeeringIPV6"].map((field) =>
    configuration(field, { [field]: "169.254.9.9" }, field, {
      message: "is not supported: pods are not BGP peers; remove it",
    }),
  ),
  configuration("programClusterRoutes", { programClusterRoutes: "Enabled" }, "programClusterRoutes", {
    message:
      "is not supported: BIRD programs the routes of pools without a tunnel, the agent those of others; remove it",
  }),

  peer("no peer", { node: "a" }, "peerIP", {
    message: "is missing, and peerSelector too; add the address of a router, or a selector of nodes",
  }),
  peer("two peers", { peerIP: "192.0.2.1", peerSelector: "has(router)" }, "peerSelector", {
    message: "cannot be combined with peerIP; remove one of the two",
  }),
  peer("a node and a selector", { ...ROUTER, node: "a", nodeSelector: "all()" }, "nodeSelector", {
    message: "cannot be combined with node; remove one of the two",
  }),
  peer("no AS number", { peerIP: "192.0.2.1" }, "asNumber", { message: "is missing; add the AS number of the peer" }),
  peer("an AS number of nodes", { peerSelector: "has(router)", asNumber: 64_512 }, "asNumber", {
    message: "cannot be combined with peerSelector: nodes have their own AS number; remove it",
  }),
  ...["192.0.2", "192.0.2.1:0", "192.0.2.1:65536", "fd00::1:", "[fd00::1]", "[192.0.2.999]:179", "router"].map(
    (peerIP): BadResource =>
      peer(`the address ${peerIP}`, { ...ROUTER, peerIP }, "peerIP", {
        message: 'is not an address of a peer; use for example "192.0.2.1", "192.0.2.1:1790" or "[fd00::1]:1790"',
      }),
  ),
  peer("the AS number sixty", { ...ROUTER, asNumber: "sixty" }, "asNumber", {
    message: NOT_AN_AS_NUMBER,
    onServer: "spec.asNumber: Invalid value",
  }),
  peer("a bad selector", { peerSelector: "zone = a" }, "peerSelector", { message: "is not a valid selector" }),
  peer(
    "two passwords",
    { ...ROUTER, password: { file: "/a", secretKeyRef: { name: "a", key: "b" } } },
    "password.secretKeyRef",
    { message: "cannot be combined with file; remove one of them" },
  ),
  peer("a relative file", { ...ROUTER, password: { file: "password" } }, "password.file", {
    message: "is not an absolute path; begin it with /",
  }),
  peer("too many hops", { ...ROUTER, ttlSecurity: 256 }, "ttlSecurity", { message: "is out of range; use 0 to 255" }),
  peer("a pod as the peer", { localWorkloadSelector: "has(router)" }, "localWorkloadSelector", {
    message: "is not supported: pods are not BGP peers; remove it, and use peerIP or peerSelector",
  }),
  peer("a gateway to the peer", { ...ROUTER, reachableBy: "192.0.2.254" }, "reachableBy", {
    message: "is not supported; remove it, and add a route to the peer to the hosts",
  }),

  filter("a network without an operator", { cidr: "10.0.0.0/8" }, "cidr", "needs matchOperator; add Equal"),
  filter("an operator without a network", { matchOperator: "In" }, "matchOperator", "needs cidr; add the network"),
  filter(
    "a network of the other family",
    { cidr: "fd00::/8", matchOperator: "In" },
    "cidr",
    "is not an IPv4 network; move the rule to the list of its family",
  ),
  filter(
    "prefix lengths with Equal",
    { cidr: "10.0.0.0/8", matchOperator: "Equal", prefixLength: { min: 16 } },
    "prefixLength",
    "needs matchOperator In or NotIn; use one of them, or remove prefixLength",
  ),
  filter(
    "prefix lengths in the wrong order",
    { cidr: "10.0.0.0/8", matchOperator: "In", prefixLength: { min: 24, max: 16 } },
    "prefixLength",
    "has a min above max; exchange them",
  ),
  filter(
    "a prefix length of the other family",
    { cidr: "10.0.0.0/8", matchOperator: "In", prefixLength: { max: 64 } },
    "prefixLength.max",
    "is not a prefix length; use 0 to 32",
  ),
  filter("a quoted interface", { interface: 'eth0"' }, "interface", "is not the name of an interface"),
];

export const GOOD_BGP: readonly Pick<BadResource, "kind" | "name" | "spec">[] = [
  {
    kind: CONFIGURATION,
    name: "default",
    spec: {
      nodeToNodeMeshEnabled: true,
      asNumber: "1.10",
      listenPort: 178,
      bindMode: "NodeIP",
      logSeverityScreen: "Info",
      serviceClusterIPs: [{ cidr: "10.96.0.0/12" }, { cidr: "fd00:96::/112" }],
      serviceExternalIPs: [{ cidr: "198.51.100.129/32" }],
      serviceLoadBalancerIPs: [{ cidr: "203.0.113.0/24" }],
      communities: [{ name: "large", value: "4200000000:300:100" }],
      prefixAdvertisements: [{ cidr: "172.20.4.0/26", communities: ["large", "63400:120"] }],
      nodeMeshPassword: { secretKeyRef: { name: "bgp-passwords", key: "mesh" } },
      nodeMeshMaxRestartTime: "2m0s",
      ignoredInterfaces: ["docker*"],
    },
  },
  {
    kind: CONFIGURATION,
    name: "node.rack-1",
    spec: {
      listenPort: 1790,
      logSeverityScreen: "Debug",
      communities: [{ name: "rack", value: "64512:1" }],
      prefixAdvertisements: [{ cidr: "fd00::/8", communities: ["rack"] }],
    },
  },
  {
    kind: PEER,
    name: "reflectors",
    spec: { nodeSelector: "!has(reflector)", peerSelector: "has(reflector)", reversePeering: "Auto" },
  },
  {
    kind: PEER,
    name: "router",
    spec: {
      nodeSelector: 'rack == "1"',
      peerIP: "[fd00::1]:1790",
      asNumber: 4_200_000_000,
      localASNumber: 64_513,
      keepOriginalNextHop: true,
      nextHopMode: "Self",
      password: { secretKeyRef: { name: "bgp-passwords", key: "router" } },
      sourceAddress: "None",
      maxRestartTime: "10s",
      numAllowedLocalASNumbers: 1,
      ttlSecurity: 1,
      filters: ["from-router"],
    },
  },
  { kind: PEER, name: "one-node", spec: { node: "a", peerIP: "192.0.2.1:1790", asNumber: "64512" } },
  {
    kind: FILTER,
    name: "from-router",
    spec: {
      exportV4: [
        { action: "Accept", matchOperator: "In", cidr: "77.0.0.0/16", source: "RemotePeers" },
        { action: "Reject", interface: "vxlan.*" },
      ],
      importV4: [
        { action: "Accept", matchOperator: "In", cidr: "55.0.0.0/16", prefixLength: { min: 30 } },
        { action: "Reject", matchOperator: "NotIn", cidr: "44.0.0.0/16" },
      ],
      exportV6: [{ action: "Reject", source: "RemotePeers" }],
      importV6: [{ action: "Accept", matchOperator: "Equal", cidr: "5000::/64" }, { action: "Reject" }],
    },
  },
];
