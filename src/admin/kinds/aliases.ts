/**
 * More names of kinds on the command line: those that users of the peer's tool,
 * of kubectl and of podman type. Not short names of the custom resource definitions, since some of them
 * (`no`, `policy`) mean other resources to kubectl.
 */
import {
  BGP_FILTER,
  BGP_PEER,
  ENDPOINT,
  GLOBAL_NETWORK_POLICY,
  GLOBAL_NETWORK_SET,
  NETWORK_POLICY,
  NODE,
  NODE_AGENT_CONFIGURATION,
  PROFILE,
  TIER,
} from "../../model/kinds.ts";
import type { AdminKind } from "./kind.ts";
import { ADMIN_KINDS } from "./kinds.ts";

const ALIASES: ReadonlyMap<string, readonly string[]> = new Map([
  [NODE.kind, ["nos"]],
  [PROFILE.kind, ["pros"]],
  [NETWORK_POLICY.kind, ["netpol", "nps", "policy", "policies", "pol", "pols"]],
  [GLOBAL_NETWORK_POLICY.kind, ["gnps"]],
  [GLOBAL_NETWORK_SET.kind, ["gnetset", "gnetsets"]],
  [BGP_PEER.kind, ["bgpps", "bp", "bps"]],
  [BGP_FILTER.kind, ["bgpfs", "bf", "bfs"]],
  [TIER.kind, ["ti"]],
  [ENDPOINT.kind, ["container", "containers"]],
  [NODE_AGENT_CONFIGURATION.kind, ["felixconfiguration", "felixconfigurations", "felixconfig", "felixconfigs"]],
]);

export function aliasesOf({ kind }: Pick<AdminKind, "kind">): readonly string[] {
  return ALIASES.get(kind) ?? [];
}

export function kindWithAlias(word: string): AdminKind | undefined {
  return ADMIN_KINDS.find((row) => aliasesOf(row).includes(word.toLowerCase()));
}
