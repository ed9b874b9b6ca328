/** The kinds of `crd.vendor.org/v1`, and what each of them becomes. */
import {
  BGP_CONFIGURATION,
  BGP_FILTER,
  BGP_PEER,
  CLUSTER_INFORMATION,
  GLOBAL_NETWORK_POLICY,
  GLOBAL_NETWORK_SET,
  HOST_ENDPOINT,
  KUBE_CONTROLLERS_CONFIGURATION,
  NETWORK_POLICY,
  NETWORK_SET,
  NODE_AGENT_CONFIGURATION,
  POOL,
  type PublicKind,
  RESERVATION,
  STAGED_GLOBAL_NETWORK_POLICY,
  STAGED_KUBERNETES_NETWORK_POLICY,
  STAGED_NETWORK_POLICY,
  TIER,
} from "../../model/kinds.ts";
import { FORMER_AGENT_CONFIGURATION } from "../former-names.ts";

export interface FormerResourceKind {
  readonly plural: string;
  readonly target: PublicKind;
}

/** In the order in which they are copied: the lock first, tiers and pools before what refers to them. */
export const FORMER_RESOURCES: readonly FormerResourceKind[] = [
  ...[CLUSTER_INFORMATION, TIER, POOL, RESERVATION, GLOBAL_NETWORK_SET, NETWORK_SET].map(asBefore),
  ...[STAGED_GLOBAL_NETWORK_POLICY, STAGED_NETWORK_POLICY, STAGED_KUBERNETES_NETWORK_POLICY].map(asBefore),
  ...[GLOBAL_NETWORK_POLICY, NETWORK_POLICY, HOST_ENDPOINT, KUBE_CONTROLLERS_CONFIGURATION].map(asBefore),
  ...[BGP_CONFIGURATION, BGP_PEER, BGP_FILTER].map(asBefore),
  { plural: FORMER_AGENT_CONFIGURATION.plural, target: NODE_AGENT_CONFIGURATION },
];

function asBefore(target: PublicKind): FormerResourceKind {
  return { plural: target.plural, target };
}

export const FORMER_IPAM = {
  blocks: "ipamblocks",
  affinities: "blockaffinities",
  handles: "ipamhandles",
  configurations: "ipamconfigs",
} as const;

/** All that are moved. */
export const FORMER_PLURALS: readonly string[] = [
  ...FORMER_RESOURCES.map(({ plural }) => plural),
  ...Object.values(FORMER_IPAM),
];
