import { below, type Descriptions, type KindDescriptions } from "./fields.ts";

const PASSWORD: Descriptions = {
  secretKeyRef: "A key of a Secret in the namespace of the agent",
  "secretKeyRef.name": "Name of the Secret; the agent is permitted to read bgp-passwords, others need a Role",
  "secretKeyRef.key": "Key of the password in the Secret",
  file: "Absolute path of a file on each node, which contains the password",
};

const RULE: Descriptions = {
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

export const BGP_KINDS: KindDescriptions = {
  BGPConfiguration: {
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
  BGPPeer: {
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
  BGPFilter: {
    "": "Which routes peers get and give; the first rule that matches a route decides",
    spec: "Rules for each family and direction; without a match routes are imported, and routes of pools, pod CIDRs and Services exported",
    ...below("spec.exportV4", "IPv4 routes to the peer", RULE),
    ...below("spec.importV4", "IPv4 routes from the peer", RULE),
    ...below("spec.exportV6", "IPv6 routes to the peer", RULE),
    ...below("spec.importV6", "IPv6 routes from the peer", RULE),
  },
};
