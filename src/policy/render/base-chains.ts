/**
 * The chains at which the kernel enters the table, and how packets of workloads find their policies.
 *
 *   forward 0   from a workload -> from_workload    its egress policy
 *   forward 1   to a workload   -> to_workload      its ingress policy
 *   input 0     from a workload -> from_workload    its egress policy, for packets to this host
 *   input 1     from a workload: what the configuration says about packets to this host
 *
 * On a host with IPVS (kube-proxy's mode of that name) a packet to a Service is taken at input 99, gets another
 * destination and is sent on through the output hook, without a name of the interface that it came from. There:
 *
 *   input 97    every packet: the mark "arrived"; from a workload: also its mark
 *   input 101   the marks go; from a workload, as input 0 elsewhere
 *   input 102   as input 1 elsewhere
 *   output 0    with the mark of workloads -> from_workload_address    its egress policy, by its source address
 *   output 1    with the mark "arrived", which goes -> to_workload     its ingress policy
 *
 * While flows are observed:
 *
 *   postrouting 0   from the host itself to a workload of its own: only written into the label of the connection
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
import { exemptLinkComment, HOST_TO_OWN_WORKLOAD } from "../table/rule-comment.ts";
import {
  baseChain,
  byInterface,
  chain,
  drop,
  type InterfaceKey,
  knownConnections,
  matchNewConnections,
  neighbourDiscovery,
} from "./chain-parts.ts";
import { ARRIVED, FROM_WORKLOAD } from "./packet-mark.ts";
import { REJECTED_CHAIN } from "./rejected.ts";
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

/** IPVS takes packets at 99, and after 98 what it replied to. What it takes does not come to the second. */
const BEFORE_IPVS = 97;
const AFTER_IPVS = 101;

const USUAL_VXLAN_PORT = 4789;

export interface BaseSettings {
  readonly defaultEndpointToHostAction: "Accept" | "Drop" | "Return";
  /** How names of workloads' interfaces begin. */
  readonly prefixes: readonly string[];
  /** Interfaces with such a name that are not of workloads. */
  readonly exempt: readonly string[];
  readonly vxlanPort: number;
  /** Whether this host has IPVS. */
  readonly hasIpvs: boolean;
  /** Whether the kernel of this host can tell the sender of a packet that it is denied. */
  readonly canReject: boolean;
  /** Whether rules tell which of them accepted a connection. */
  readonly hasFlows: boolean;
}

export function workloadBaseChains({
  defaultEndpointToHostAction,
  prefixes,
  exempt,
  vxlanPort,
  hasIpvs,
  canReject,
  hasFlows,
}: BaseSettings): readonly DesiredChain[] {
  const withPrefix = (key: InterfaceKey, target: string): readonly DesiredRule[] => [
    ...exempt.map((name) => acceptExempt(key, name)),
    ...prefixes.map((prefix) => ({ expressions: [...matchInterfacePrefix(key, prefix), jump(target)] })),
  ];
  const from = (target: string) => withPrefix("iifname", target);
  const to = (target: string) => withPrefix("oifname", target);
  return [
    ...(canReject ? [REJECTED_CHAIN] : []),
    baseChain("forward_egress", { hook: "forward", priority: 0 }, from("from_workload"), "workload egress"),
    baseChain("forward_ingress", { hook: "forward", priority: 1 }, to("to_workload"), "workload ingress"),
    ...(hasIpvs
      ? chainsAroundIpvs(from, to, vxlanPort)
      : [baseChain("input_egress", { hook: "input", priority: 0 }, from("workload_to_host"), "workload egress")]),
    ...(hasFlows ? [hostToWorkload(exempt, prefixes)] : []),
    ...(defaultEndpointToHostAction === "Drop"
      ? [
          hasIpvs
            ? baseChain("input_host_after_ipvs", { hook: "input", priority: AFTER_IPVS + 1 }, from("no_host"))
            : baseChain("input_host", { hook: "input", priority: 1 }, from("no_host")),
          chain("no_host", [neighbourDiscovery(), ...knownConnections(), drop("workload to host")], "host in"),
        ]
      : []),
    chain(
      "workload_to_host",
      [neighbourDiscovery(), { expressions: [verdict({ kind: "goto", chain: "from_workload" })] }],
      "workload egress",
    ),
    chain(
      "from_workload",
      [
        ...noTunnels(vxlanPort),
        ...knownConnections(),
        byInterface("iifname", FROM_WORKLOADS),
        drop("unknown workload interface, egress"),
      ],
      "workload egress",
    ),
    chain(
      "to_workload",
      [...knownConnections(), byInterface("oifname", TO_WORKLOADS), drop("unknown workload interface, ingress")],
      "workload ingress",
    ),
  ];
}

function acceptExempt(key: InterfaceKey, name: string): DesiredRule {
  return {
    expressions: [...matchInterface(key, "equal", name), verdict({ kind: "accept" })],
    comment: exemptLinkComment(name),
    labels: "new ones",
  };
}

/**
 * Here and not at the output hook: there the kernel still names the interface to which a Service was routed, not that of the
 * pod behind it. Whatever else leaves by the interface of a workload has come in by another one, also through IPVS.
 */
function hostToWorkload(exempt: readonly string[], prefixes: readonly string[]): DesiredChain {
  const accept = verdict({ kind: "accept" });
  return baseChain(
    "postrouting_host",
    { hook: "postrouting", priority: 0 },
    [
      ...exempt.map((name) => ({ expressions: [...matchInterface("oifname", "equal", name), accept] })),
      ...prefixes.map((prefix) => ({
        expressions: [
          { kind: "meta", key: "iif", to: 0 },
          { kind: "compare", operator: "equal", from: 0, value: hostNumber(NO_INTERFACE) },
          ...matchInterfacePrefix("oifname", prefix),
          ...matchNewConnections(),
          accept,
        ] satisfies Expression[],
        comment: HOST_TO_OWN_WORKLOAD,
      })),
    ],
    "workload ingress",
  );
}

const NO_INTERFACE = 0;

type RulesByInterface = (target: string) => readonly DesiredRule[];

/** They have names of their own: the kernel cannot change the priority of a chain. */
function chainsAroundIpvs(from: RulesByInterface, to: RulesByInterface, vxlanPort: number): readonly DesiredChain[] {
  return [
    baseChain("input_mark", { hook: "input", priority: BEFORE_IPVS }, [
      { expressions: ARRIVED.set },
      ...from("mark_workload"),
    ]),
    chain("mark_workload", [{ expressions: FROM_WORKLOAD.set }]),
    baseChain(
      "input_egress_after_ipvs",
      { hook: "input", priority: AFTER_IPVS },
      [...UNMARK, ...from("workload_to_host")],
      "workload egress",
    ),
    baseChain("output_egress", { hook: "output", priority: 0 }, [
      { expressions: [...FROM_WORKLOAD.isSet, jump("from_workload_address")] },
    ]),
    chain(
      "from_workload_address",
      [
        ...noTunnels(vxlanPort),
        ...knownConnections(),
        ...([4, 6] as const).map(bySourceAddress),
        drop("unknown workload address, egress"),
      ],
      "workload egress",
    ),
    baseChain("output_ingress", { hook: "output", priority: 1 }, [
      { expressions: [...ARRIVED.isSet, jump("sent_on")] },
    ]),
    // The marks go first: the packet may be put into another one, which passes the same hook.
    chain("sent_on", [...UNMARK, ...to("to_workload")], "workload ingress"),
  ];
}

const UNMARK: readonly DesiredRule[] = [{ expressions: ARRIVED.clear }, { expressions: FROM_WORKLOAD.clear }];

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
