/** BGPConfiguration, BGPPeer and BGPFilter. The checks of the model are in `src/model/bgp-*.ts`, with the messages. */
import { asNumberField } from "../../model/as-number.ts";
import {
  COMMUNITY_PATTERN,
  CONFIGURATION_MESSAGES,
  NODE_FIELDS,
  REFUSED_CONFIGURATION_FIELDS,
} from "../../model/bgp-configuration.ts";
import {
  IPV4_WITH_PORT,
  IPV6_WITH_PORT,
  NOT_A_PEER_ADDRESS,
  NOT_A_RESTART_TIME,
  PASSWORD_MESSAGES,
  peerAddressField,
  RESTART_TIME_PATTERN,
  restartTimeField,
} from "../../model/bgp-fields.ts";
import { FILTER_MESSAGES, RULE_LISTS } from "../../model/bgp-filter.ts";
import { PEER_MESSAGES, REFUSED_PEER_FIELDS } from "../../model/bgp-peer.ts";
import { OF_ALL_NODES } from "../../model/settings-name.ts";
import { celText, LONGEST_PREFIX, refusals, text } from "./cel.ts";
import type { CelRule } from "./crd-schema.ts";
import { below, type CheckedFields, type Descriptions, type ReleasedKinds, type RulesByPath } from "./kind.ts";
import { SETTINGS_NAME_RULE } from "./node-agent-configuration.ts";

const PASSWORD_RULES: readonly CelRule[] = [
  { rule: "has(self.secretKeyRef) || has(self.file)", fieldPath: ".secretKeyRef", message: PASSWORD_MESSAGES.none },
  { rule: "!has(self.secretKeyRef) || !has(self.file)", fieldPath: ".secretKeyRef", message: PASSWORD_MESSAGES.both },
];

/** Fields of BGPConfiguration that only `default` may have. */
const ONLY_DEFAULT = [
  "nodeToNodeMeshEnabled",
  "asNumber",
  "bindMode",
  "serviceClusterIPs",
  "serviceExternalIPs",
  "serviceLoadBalancerIPs",
  "nodeMeshPassword",
  "nodeMeshMaxRestartTime",
  "ignoredInterfaces",
].filter((field) => !(NODE_FIELDS as readonly string[]).includes(field));

const BGP_CONFIGURATION_RULES: RulesByPath = {
  "": [
    SETTINGS_NAME_RULE,
    ...ONLY_DEFAULT.map((field) => ({
      rule: `self.metadata.name == '${OF_ALL_NODES}' || !has(self.spec) || !has(self.spec.${field})`,
      message: `spec.${field}: ${field === "asNumber" ? CONFIGURATION_MESSAGES.asNumber : CONFIGURATION_MESSAGES.onlyDefault}`,
    })),
  ],
  spec: [
    ...refusals(REFUSED_CONFIGURATION_FIELDS),
    ...["nodeMeshPassword", "nodeMeshMaxRestartTime"].map((field) => ({
      rule: `!has(self.${field}) || !has(self.nodeToNodeMeshEnabled) || self.nodeToNodeMeshEnabled`,
      fieldPath: ".nodeToNodeMeshEnabled",
      message: CONFIGURATION_MESSAGES.needsMesh(field),
    })),
    {
      rule: `!has(self.prefixAdvertisements) || self.prefixAdvertisements.all(each, each.communities.all(text, text.matches(r'${COMMUNITY_PATTERN}') || (has(self.communities) && self.communities.exists(known, known.name == text))))`,
      fieldPath: ".prefixAdvertisements",
      message: CONFIGURATION_MESSAGES.community,
    },
  ],
  "spec.nodeMeshPassword": PASSWORD_RULES,
};

const given = (field: string) => `(has(self.${field}) && self.${field} != '')`;

const BGP_PEER_RULES: RulesByPath = {
  spec: [
    ...refusals(REFUSED_PEER_FIELDS),
    {
      rule: `!${given("node")} || !${given("nodeSelector")}`,
      fieldPath: ".nodeSelector",
      message: PEER_MESSAGES.nodeSelector,
    },
    {
      rule: `has(self.peerIP) || ${given("peerSelector")} || has(self.localWorkloadSelector)`,
      fieldPath: ".peerIP",
      message: PEER_MESSAGES.noPeer,
    },
    {
      rule: `!has(self.peerIP) || !${given("peerSelector")}`,
      fieldPath: ".peerSelector",
      message: PEER_MESSAGES.peerSelector,
    },
    {
      rule: `!has(self.peerIP) || ${given("peerSelector")} || has(self.asNumber)`,
      fieldPath: ".asNumber",
      message: PEER_MESSAGES.noAsNumber,
    },
    {
      rule: `!${given("peerSelector")} || !has(self.asNumber)`,
      fieldPath: ".asNumber",
      message: PEER_MESSAGES.asNumber,
    },
  ],
  "spec.password": PASSWORD_RULES,
};

const BGP_FILTER_RULES: RulesByPath = Object.fromEntries(
  RULE_LISTS.map(([list, family]) => [
    `spec.${list}[]`,
    [
      {
        rule: "!has(self.cidr) || has(self.matchOperator)",
        fieldPath: ".cidr",
        message: FILTER_MESSAGES.operator,
      },
      {
        rule: "has(self.cidr) || !has(self.matchOperator)",
        fieldPath: ".matchOperator",
        message: FILTER_MESSAGES.cidr,
      },
      {
        rule: `!has(self.cidr) || !isCIDR(self.cidr) || cidr(self.cidr).ip().family() == ${family}`,
        fieldPath: ".cidr",
        message: FILTER_MESSAGES.family(family),
      },
      {
        rule: "!has(self.prefixLength) || (has(self.matchOperator) && self.matchOperator in ['In', 'NotIn'])",
        fieldPath: ".prefixLength",
        message: FILTER_MESSAGES.lengthsWithoutRange,
      },
      {
        rule: "!has(self.prefixLength) || !has(self.prefixLength.min) || !has(self.prefixLength.max) || self.prefixLength.min <= self.prefixLength.max",
        fieldPath: ".prefixLength",
        message: FILTER_MESSAGES.lengthsReversed,
      },
    ],
  ]),
);

const PASSWORD: Descriptions = {
  secretKeyRef: "A key of a Secret in the namespace of the agent",
  "secretKeyRef.name": "Name of the Secret; the agent is permitted to read bgp-passwords, others need a Role",
  "secretKeyRef.key": "Key of the password in the Secret",
  file: "Absolute path of a file on each node, which contains the password",
};

const FILTER_RULE: Descriptions = {
  action: "What to do with a route that matches",
  cidr: "Network that the route is compared with; without it every route matches",
  matchOperator: "In: the route is the network or inside it; Equal: it is the network; NotIn, NotEqual: the opposites",
  prefixLength: "Limits In and NotIn to routes with prefix lengths in a range",
  "prefixLength.min": "Shortest prefix length (default: that of cidr)",
  "prefixLength.max": "Longest prefix length (default: that of a single address)",
  source: "RemotePeers: only routes that were learned by BGP, not those of this node",
  interface: "Only routes whose next hop is on an interface of this name; * stands for any text",
};

const NETWORKS = (what: string) =>
  `Networks of the ${what} of Services, which every node announces as a whole; addresses of Services with externalTrafficPolicy: Local also one by one, from the nodes with a ready endpoint`;

export const BGP_KINDS: ReleasedKinds = {
  BGPConfiguration: {
    columns: [
      { name: "Mesh", path: ".spec.nodeToNodeMeshEnabled", type: "boolean" },
      { name: "AS Number", path: ".spec.asNumber" },
    ],
    rules: BGP_CONFIGURATION_RULES,
    descriptions: {
      "": "BGP of nodes and what they announce; default is for all nodes, node.NAME overrides ports, log and communities of one node",
      spec: "The settings; what is absent has its default",
      "spec.nodeToNodeMeshEnabled": "Every node has a session with every other node (default: true)",
      "spec.asNumber": "AS number of nodes that do not have one of their own (default: 64512)",
      "spec.listenPort": "Port that BGP listens on (default: 179)",
      "spec.bindMode": "NodeIP: listen on the address of the node only (default: None)",
      "spec.logSeverityScreen": "Minimum severity that BIRD logs; Debug also logs its protocols (default: Info)",
      "spec.serviceClusterIPs": NETWORKS("cluster IPs"),
      "spec.serviceClusterIPs.cidr": "A network",
      "spec.serviceExternalIPs": NETWORKS("external IPs"),
      "spec.serviceExternalIPs.cidr": "A network",
      "spec.serviceLoadBalancerIPs": NETWORKS("load balancer IPs"),
      "spec.serviceLoadBalancerIPs.cidr": "A network",
      "spec.communities": "Names of communities",
      "spec.communities.name": "Name, for prefixAdvertisements",
      "spec.communities.value": 'Standard community like "64512:100", or large one like "64512:100:1"',
      "spec.prefixAdvertisements": "Communities that are added to announced routes",
      "spec.prefixAdvertisements.cidr": "To routes within this network",
      "spec.prefixAdvertisements.communities": "Values, or names of communities of this resource",
      ...below("spec.nodeMeshPassword", "Password of the sessions of the mesh", PASSWORD),
      "spec.nodeMeshMaxRestartTime":
        "How long nodes of the mesh keep the routes of a node whose BIRD restarts (default: 120s)",
      "spec.ignoredInterfaces": "Interfaces whose networks do not resolve next hops; * stands for any text",
      "spec.localWorkloadPeeringIPV4": "Refused: pods are not BGP peers",
      "spec.localWorkloadPeeringIPV6": "Refused: pods are not BGP peers",
      "spec.programClusterRoutes":
        "Refused: BIRD programs the routes of pools without a tunnel, the agent those of others",
    },
  },
  BGPPeer: {
    columns: [
      { name: "Peer", path: ".spec.peerIP" },
      { name: "Peer Nodes", path: ".spec.peerSelector" },
      { name: "AS Number", path: ".spec.asNumber" },
      { name: "Node", path: ".spec.node" },
      { name: "Nodes", path: ".spec.nodeSelector" },
      { name: "Filters", path: ".spec.filters", isWide: true },
    ],
    rules: BGP_PEER_RULES,
    descriptions: {
      "": "BGP sessions of nodes with a router, or with other nodes",
      spec: "Who speaks with whom, and how",
      "spec.node": "Name of the only node that has the session; without node and nodeSelector all nodes have it",
      "spec.nodeSelector": "The nodes that have the session",
      "spec.peerIP": 'Address of the peer, with a port if it is not 179: "192.0.2.1:1790", "[fd00::1]:1790"',
      "spec.asNumber": "AS number of the peer, such as 64512 or 1.10",
      "spec.localASNumber": "AS number of the nodes in these sessions (default: their own)",
      "spec.peerSelector": "The nodes to peer with, at their addresses of both families",
      "spec.reversePeering": "Whether nodes that are the peer get the session too (default: Auto)",
      "spec.nextHopMode":
        "Next hop of announced routes: as BGP defines it, always this node, or unchanged (default: Auto)",
      "spec.keepOriginalNextHop":
        "The next hop of routes is kept in sessions with another AS; nextHopMode takes precedence",
      ...below("spec.password", "Password of the sessions (TCP MD5), at most 80 characters", PASSWORD),
      "spec.sourceAddress":
        "UseNodeIP: speak from the address of the node; None: the kernel chooses (default: UseNodeIP)",
      "spec.maxRestartTime": "How long the peer keeps the routes of a node whose BIRD restarts (default: 120s)",
      "spec.numAllowedLocalASNumbers": "How often the own AS may be in the path of a learned route (default: 0)",
      "spec.ttlSecurity":
        "Accept packets of the peer from at most this many hops away only; 0: from anywhere (default: 0)",
      "spec.filters": "Names of BGPFilters, applied in this order",
      "spec.localWorkloadSelector": "Refused: pods are not BGP peers",
      "spec.reachableBy": "Refused: add a route to the peer to the hosts instead",
    },
  },
  BGPFilter: {
    columns: [],
    rules: BGP_FILTER_RULES,
    descriptions: {
      "": "Which routes peers get and give; the first rule that matches a route decides",
      spec: "Rules for each family and direction; without a match routes are imported, and routes of pools, pod CIDRs and Services exported",
      ...below("spec.exportV4", "IPv4 routes to the peer", FILTER_RULE),
      ...below("spec.importV4", "IPv4 routes from the peer", FILTER_RULE),
      ...below("spec.exportV6", "IPv6 routes to the peer", FILTER_RULE),
      ...below("spec.importV6", "IPv6 routes from the peer", FILTER_RULE),
    },
  },
};

const AS_NUMBER_PATTERN = "^([0-9]{1,10}|[0-9]{1,5}\\.[0-9]{1,5})$";

const IS_PEER_ADDRESS: CelRule = {
  rule: [
    "isIP(self)",
    `(self.matches(${celText(IPV4_WITH_PORT)}) && isIP(self.split(':')[0]))`,
    `(self.matches(${celText(IPV6_WITH_PORT)}) && isIP(self.substring(1, self.indexOf(']'))))`,
  ].join(" || "),
  message: NOT_A_PEER_ADDRESS,
};

const LONGEST_DURATION = "99h9999m9999s".length;

const IS_RESTART_TIME: CelRule = {
  rule: `self != '' && self.matches(${celText(RESTART_TIME_PATTERN)}) && duration(self) >= duration('1s') && duration(self) <= duration('4095s')`,
  message: NOT_A_RESTART_TIME,
};

export const BGP_FIELDS: CheckedFields = [
  [
    asNumberField,
    { "x-kubernetes-int-or-string": true, minimum: 1, maximum: 4_294_967_295, pattern: AS_NUMBER_PATTERN },
  ],
  [peerAddressField, text(LONGEST_PREFIX, [IS_PEER_ADDRESS])],
  [restartTimeField, text(LONGEST_DURATION, [IS_RESTART_TIME])],
];
