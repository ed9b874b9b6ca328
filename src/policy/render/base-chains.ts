/**
 * The chains at which the kernel enters the table, and how packets of workloads find their policies.
 *
 *   forward 0   from a workload -> from_workload    its egress policy
 *   forward 1   to a workload   -> to_workload      its ingress policy
 *   input 101   from a workload -> from_workload    its egress policy, for packets to this host
 *   input 102   from a workload: what the configuration says about packets to this host
 *
 * IPVS (kube-proxy's mode of that name) takes a packet to a Service at input 99, gives it another destination and sends
 * it on through the output hook, without a name of the interface that it came from:
 *
 *   input 0     from a workload: the mark
 *   output 0    with the mark, which goes -> from_workload_address    its egress policy, by its source address
 *   output 1    to a workload, not from an address of this host -> to_workload    its ingress policy
 *
 * In nftables "accept" ends only the chain of its hook and priority: a packet between two workloads of this host is
 * accepted at priority 0 by the one and then judged at priority 1 by the other. Packets of the host itself to its
 * workloads (probes) pass no forward chain. Pure.
 */
import type { Expression } from "../../linux/nftables/expression.ts";
import { loadAddress, matchFamily, matchInterface, matchInterfacePrefix, verdict } from "../../linux/nftables/match.ts";
import type { NftSet } from "../../linux/nftables/set.ts";
import { matchTunnel, TUNNEL_KINDS } from "../../linux/nftables/tunnel-match.ts";
import { hostNumber } from "../../linux/nftables/value.ts";
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
import { FROM_WORKLOAD } from "./packet-mark.ts";
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

/** The address of a workload of this node -> the chain of its egress policies. */
export const SOURCES = { 4: "workload_sources", 6: "workload_sources6" } as const;
export const SOURCE_MAPS: readonly NftSet[] = [
  { name: SOURCES[4], key: ["ipv4_addr"], data: "verdict" },
  { name: SOURCES[6], key: ["ipv6_addr"], data: "verdict" },
];

/** What IPVS takes does not come this far. */
const AFTER_IPVS = 101;
/** RTN_LOCAL of the kernel. */
const LOCAL_ADDRESS = 2;

export interface BaseSettings {
  readonly defaultEndpointToHostAction: "Accept" | "Drop" | "Return";
  /** How names of workloads' interfaces begin. */
  readonly prefixes: readonly string[];
  /** Interfaces with such a name that are not of workloads. */
  readonly exempt: readonly string[];
}

export function workloadBaseChains({
  defaultEndpointToHostAction,
  prefixes,
  exempt,
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
    baseChain("input_mark", { hook: "input", priority: 0 }, from("mark_workload")),
    baseChain("input_egress", { hook: "input", priority: AFTER_IPVS }, from("workload_to_host")),
    baseChain("output_egress", { hook: "output", priority: 0 }, [
      { expressions: [...FROM_WORKLOAD.isSet, jump("from_workload_address")] },
    ]),
    baseChain("output_ingress", { hook: "output", priority: 1 }, to("local_to_workload")),
    ...(defaultEndpointToHostAction === "Drop"
      ? [
          baseChain("input_host", { hook: "input", priority: AFTER_IPVS + 1 }, from("no_host")),
          chain("no_host", [neighbourDiscovery(), ...knownConnections(), drop("workload to host")]),
        ]
      : []),
    chain("mark_workload", [{ expressions: FROM_WORKLOAD.set }]),
    chain("workload_to_host", [
      { expressions: FROM_WORKLOAD.clear },
      neighbourDiscovery(),
      { expressions: [verdict({ kind: "goto", chain: "from_workload" })] },
    ]),
    chain("from_workload", [
      ...noTunnels(),
      ...knownConnections(),
      byInterface("iifname", FROM_WORKLOADS),
      drop("unknown workload interface, egress"),
    ]),
    // The mark goes first: the packet may be put into another one, which passes the same chain.
    chain("from_workload_address", [
      { expressions: FROM_WORKLOAD.clear },
      ...noTunnels(),
      ...knownConnections(),
      ...([4, 6] as const).map(bySourceAddress),
      drop("unknown workload address, egress"),
    ]),
    chain("local_to_workload", [
      { expressions: [...isFromThisHost(), verdict({ kind: "accept" })] },
      { expressions: [verdict({ kind: "goto", chain: "to_workload" })] },
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

/** To the chain of the workload with the source address; a packet of any other address continues. */
function bySourceAddress(family: 4 | 6): DesiredRule {
  return {
    expressions: [
      ...matchFamily(family),
      loadAddress(family, "source", 0),
      { kind: "lookup", set: SOURCES[family], from: 0, to: "verdict" },
    ],
  };
}

function isFromThisHost(): readonly Expression[] {
  return [
    { kind: "fib", result: "type", by: ["saddr"], to: 0 },
    { kind: "compare", operator: "equal", from: 0, value: hostNumber(LOCAL_ADDRESS) },
  ];
}

/**
 * Otherwise a workload could wrap its packets, and no policy would see them. Before known connections: a workload may
 * also reply to what another host sends from the port of VXLAN.
 */
function noTunnels(): readonly DesiredRule[] {
  return TUNNEL_KINDS.map((kind) => drop(`${TUNNEL_TITLES[kind]} of a workload`, matchTunnel(kind)));
}
