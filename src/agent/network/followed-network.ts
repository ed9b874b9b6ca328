/** The datastore of the installed network, and the copy of its resources that all loops of the agent share. */

import type { Datastore } from "../../datastore/datastore.ts";
import type { KindTable } from "../../datastore/replica/kinds.ts";
import type { Replica } from "../../datastore/replica.ts";
import { followedEndpoints } from "../../policy/followed-endpoints.ts";
import { POLICY_KINDS, type PolicyValues } from "../../policy/inputs.ts";
import { BGP_KINDS, type BgpValues } from "../../routing/bgp/inputs.ts";
import { followedNodes } from "../../routing/followed-nodes.ts";
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
