/** The kinds that only BGP is computed from, as the replica of the node agent follows them. */
import { type KindTable, sourceOf } from "../../datastore/replica/kinds.ts";
import type { BGPConfiguration } from "../../model/bgp-configuration.ts";
import type { BGPFilter } from "../../model/bgp-filter.ts";
import type { BGPPeer } from "../../model/bgp-peer.ts";
import { BGP_CONFIGURATION, BGP_FILTER, BGP_PEER } from "../../model/kinds.ts";

export interface BgpValues {
  readonly bgpConfigurations: BGPConfiguration;
  readonly bgpPeers: BGPPeer;
  readonly bgpFilters: BGPFilter;
}

export const BGP_KINDS: KindTable<BgpValues> = {
  bgpConfigurations: sourceOf(BGP_CONFIGURATION),
  bgpPeers: sourceOf(BGP_PEER),
  bgpFilters: sourceOf(BGP_FILTER),
};
