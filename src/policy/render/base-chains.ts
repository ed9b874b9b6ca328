/**
 * The chains at which the kernel enters the table, and how packets of workloads find their policies.
 *
 *   forward 0   from a workload -> from_workload    its egress policy
 *   forward 1   to a workload   -> to_workload      its ingress policy
 *   input 0     from a workload -> from_workload    its egress policy, for packets to this host
 *   input 1     from a workload: what the configuration says about packets to this host
 *
 * In nftables "accept" ends only the chain of its hook and priority: a packet between two workloads of this host is
 * accepted at priority 0 by the one and then judged at priority 1 by the other. Packets of the host itself to its
 * workloads (probes) pass no forward chain. Pure.
 */
import { matchInterface, matchInterfacePrefix, verdict } from "../../linux/nftables/match.ts";
import type { NftSet } from "../../linux/nftables/set.ts";
import { matchTunnel, TUNNEL_KINDS } from "../../linux/nftables/tunnel-match.ts";
import type { DesiredChain, DesiredRule } from "../table/desired-table.ts";
import {
  baseChain,
  byInterface,
  chain,
  drop,
  type InterfaceKey,
  knownConnections,
  neighbourDiscovery,
} from "./chain-parts.ts";
import { TUNNEL_TITLES } from "./tunnel-packets.ts";

export const FROM_WORKLOADS = "workloads_from";
export const TO_WORKLOADS = "workloads_to";

/** The interfaces of workloads whose sidecar reports to the agent: rules with `http` match packets to them only. */
export const SIDECARS = "sidecars";
export const SIDECAR_SET: NftSet = { name: SIDECARS, key: ["ifname"] };

/** Interface -> the chain of its policies. */
export const WORKLOAD_MAPS: readonly NftSet[] = [FROM_WORKLOADS, TO_WORKLOADS].map((name) => ({
  name,
  key: ["ifname"],
  data: "verdict",
}));

const USUAL_VXLAN_PORT = 4789;

export interface BaseSettings {
  readonly defaultEndpointToHostAction: "Accept" | "Drop" | "Return";
  /** How names of workloads' interfaces begin. */
  readonly prefixes: readonly string[];
  /** Interfaces with such a name that are not of workloads. */
  readonly exempt: readonly string[];
  readonly vxlanPort: number;
}

export function workloadBaseChains({
  defaultEndpointToHostAction,
  prefixes,
  exempt,
  vxlanPort,
}: BaseSettings): readonly DesiredChain[] {
  const withPrefix = (key: InterfaceKey, target: string): readonly DesiredRule[] => [
    ...exempt.map((name) => ({ expressions: [...matchInterface(key, "equal", name), verdict({ kind: "accept" })] })),
    ...prefixes.map((prefix) => ({ expressions: [...matchInterfacePrefix(key, prefix), jump(target)] })),
  ];
  const from = (target: string) => withPrefix("iifname", target);
  const to = (target: string) => withPrefix("oifname", target);
  return [
    baseChain("forward_egress", { hook: "forward", priority: 0 }, from("from_workload")),
    baseChain("forward_ingress", { hook: "forward", priority: 1 }, to("to_workload")),
    baseChain("input_egress", { hook: "input", priority: 0 }, from("workload_to_host")),
    ...(defaultEndpointToHostAction === "Drop"
      ? [
          baseChain("input_host", { hook: "input", priority: 1 }, from("no_host")),
          chain("no_host", [neighbourDiscovery(), ...knownConnections(), drop("workload to host")]),
        ]
      : []),
    chain("workload_to_host", [
      neighbourDiscovery(),
      { expressions: [verdict({ kind: "goto", chain: "from_workload" })] },
    ]),
    chain("from_workload", [
      ...noTunnels(vxlanPort),
      ...knownConnections(),
      byInterface("iifname", FROM_WORKLOADS),
      drop("unknown workload interface, egress"),
    ]),
    chain("to_workload", [
      ...knownConnections(),
      byInterface("oifname", TO_WORKLOADS),
      drop("unknown workload interface, ingress"),
    ]),
  ];
}

function jump(target: string) {
  return verdict({ kind: "jump", chain: target });
}

/**
 * Otherwise a workload could wrap its packets, and no policy would see them. Before known connections: a workload may
 * also reply to what another host sends from the port of VXLAN.
 */
function noTunnels(vxlanPort: number): readonly DesiredRule[] {
  // Nodes whose agents have not heard of another port yet, or are of a former release, listen at the usual one.
  const ports = [...new Set([USUAL_VXLAN_PORT, vxlanPort])];
  return TUNNEL_KINDS.flatMap((kind) =>
    (kind === "vxlan" ? ports : [vxlanPort]).map((port) =>
      drop(`${TUNNEL_TITLES[kind]} of a workload`, matchTunnel(kind, port)),
    ),
  );
}
