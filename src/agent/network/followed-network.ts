/** The datastore of the installed network, and the copy of its resources that all loops of the agent share. */

import type { Datastore } from "../../datastore/datastore.ts";
import { type KindSource, type KindTable, sourceOf } from "../../datastore/replica/kinds.ts";
import type { Replica } from "../../datastore/replica.ts";
import { NODE } from "../../model/kinds.ts";
import type { Node } from "../../model/node.ts";
import { ROUTING_STATE_ANNOTATION } from "../../model/routing-state.ts";
import { followedEndpoints } from "../../policy/followed-endpoints.ts";
import { POLICY_KINDS, type PolicyValues } from "../../policy/inputs.ts";
import { BGP_KINDS, type BgpValues } from "../../routing/bgp/inputs.ts";
import { ROUTING_KINDS, type RoutedBlockValues, type RoutingValues } from "../../routing/inputs.ts";
import type { ProvenEndpoints } from "../endpoints/proven-endpoints.ts";
import type { AgentMeans } from "../means.ts";
import type { AgentNetwork } from "./agent-network.ts";

export type NetworkValues = PolicyValues & RoutingValues & BgpValues;

/** `node`: the name of the node that follows them. */
export function networkKinds(node: string): KindTable<NetworkValues> {
  return {
    ...{ ...POLICY_KINDS, ...ROUTING_KINDS, ...BGP_KINDS },
    ...{ endpoints: followedEndpoints(node), nodes: followedNodes(node) },
  };
}

/**
 * What others write into their Nodes for people alone is left out, and a Node that is the same without it is no change:
 * otherwise a session that one node loses would let all agents of the cluster compute.
 */
function followedNodes(node: string): KindSource<Node> {
  const { prefix, decode } = sourceOf(NODE);
  return {
    prefix,
    equalIsSame: true,
    decode(entry) {
      const decoded = decode(entry);
      return decoded === undefined || decoded.metadata.name === node ? decoded : withoutRoutingState(decoded);
    },
  };
}

function withoutRoutingState(node: Node): Node {
  const { annotations } = node.metadata;
  if (annotations?.[ROUTING_STATE_ANNOTATION] === undefined) return node;
  const { [ROUTING_STATE_ANNOTATION]: _, ...others } = annotations;
  return { ...node, metadata: { ...node.metadata, annotations: others } };
}

/** The kinds that each part of the agent needs: one that cannot be listed stops only the parts that need it. */
export const KINDS_OF_PARTS = {
  policy: [
    ...(["endpoints", "containerLabels", "hostEndpoints", "profiles", "networkPolicies"] as const),
    ...([
      "globalNetworkPolicies",
      "networkSets",
      "globalNetworkSets",
      "tiers",
      "configurations",
      "serviceEndpoints",
    ] as const),
    // Tunnels between nodes are not cut.
    ...(["pools", "nodes"] as const),
  ],
  nodeRecord: ["nodes", "pools", "configurations"],
  nat: ["pools", "configurations"],
  floating: ["endpoints", "configurations"],
  clusterSources: ["pools", "nodes"],
  routes: ["nodes", "pools", "endpoints", "configurations"],
  bgp: ["nodes", "pools", "configurations", "bgpConfigurations", "bgpPeers", "bgpFilters"],
} as const satisfies Record<string, readonly (keyof NetworkValues)[]>;

export interface FollowedNetwork {
  readonly means: AgentMeans;
  readonly network: AgentNetwork;
  readonly store: Datastore;
  readonly replica: Replica<NetworkValues>;
  /** `undefined` if there are no other nodes: an embedded datastore has one only. */
  readonly blocks: Replica<RoutedBlockValues> | undefined;
  /** What annotations of pods may say; `undefined` if endpoints are records that only the plugin writes. */
  readonly proven: ProvenEndpoints | undefined;
  /** An update has arrived: if the datastore is lost again, that is news. */
  readonly heard: () => void;
  readonly log: (message: string, level: "INFO" | "WARNING" | "ERROR") => void;
}
