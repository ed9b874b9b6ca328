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
import { identity } from "../../identity.ts";
import type { Expression } from "../../linux/nftables/expression.ts";
import { matchInterfacePrefix, matchPorts, matchProtocol, verdict } from "../../linux/nftables/match.ts";
import type { BaseChain } from "../../linux/nftables/ruleset.ts";
import type { NftSet } from "../../linux/nftables/set.ts";
import { hostNumber } from "../../linux/nftables/value.ts";
import type { Verdict } from "../../linux/nftables/verdict.ts";
import type { DesiredChain, DesiredRule } from "../table/desired-table.ts";

export const FROM_WORKLOADS = "workloads_from";
export const TO_WORKLOADS = "workloads_to";

/** Interface -> the chain of its policies. */
export const WORKLOAD_MAPS: readonly NftSet[] = [FROM_WORKLOADS, TO_WORKLOADS].map((name) => ({
  name,
  key: ["ifname"],
  data: "verdict",
}));

const PROTOCOL = { ipip: 4, udp: 17, icmpv6: 58 } as const;
const VXLAN_PORT = 4789;
const STATE = { invalid: 1, established: 2, related: 4 } as const;
/** Multicast listeners, routers and neighbours: without them IPv6 does not work at all. */
const NEIGHBOUR_DISCOVERY = [130, 131, 132, 133, 134, 135, 136, 143];

export interface BaseSettings {
  readonly defaultEndpointToHostAction: "Accept" | "Drop" | "Return";
}

export function workloadBaseChains({ defaultEndpointToHostAction }: BaseSettings): readonly DesiredChain[] {
  const from = matchInterfacePrefix("iifname", identity.interfacePrefix);
  const to = matchInterfacePrefix("oifname", identity.interfacePrefix);
  const jump = (chain: string) => verdict({ kind: "jump", chain });
  return [
    base("forward_egress", "forward", 0, [[...from, jump("from_workload")]]),
    base("forward_ingress", "forward", 1, [[...to, jump("to_workload")]]),
    base("input_egress", "input", 0, [[...from, jump("workload_to_host")]]),
    ...(defaultEndpointToHostAction === "Drop" ? [base("input_host", "input", 1, [[...from, jump("no_host")]])] : []),
    ...(defaultEndpointToHostAction === "Drop"
      ? [chain("no_host", [neighbourDiscovery(), ...knownConnections(), drop("workload to host")])]
      : []),
    chain("workload_to_host", [
      neighbourDiscovery(),
      { expressions: [verdict({ kind: "goto", chain: "from_workload" })] },
    ]),
    chain("from_workload", [
      ...knownConnections(),
      ...noTunnels(),
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

function base(
  name: string,
  hook: BaseChain["hook"],
  priority: number,
  rules: readonly (readonly Expression[])[],
): DesiredChain {
  const chain = { name, base: { type: "filter", hook, priority, policy: "accept" } } as const;
  return { chain, rules: rules.map((expressions) => ({ expressions })) };
}

function chain(name: string, rules: readonly DesiredRule[]): DesiredChain {
  return { chain: { name }, rules };
}

function byInterface(key: "iifname" | "oifname", map: string): DesiredRule {
  return {
    expressions: [
      { kind: "meta", key, to: 0 },
      { kind: "lookup", set: map, from: 0, to: "verdict" },
    ],
  };
}

/** Packets of accepted connections, and errors about them, pass; what belongs to no connection is dropped. */
function knownConnections(): readonly DesiredRule[] {
  const accept: Verdict = { kind: "accept" };
  const elements = [
    { key: hostNumber(STATE.established), data: accept },
    { key: hostNumber(STATE.related), data: accept },
    { key: hostNumber(STATE.invalid), data: { kind: "drop" } as const },
  ];
  return [
    {
      expressions: [
        { kind: "ct", key: "state", to: 0 },
        { kind: "lookup", set: { key: ["ct_state"], data: "verdict", elements }, from: 0, to: "verdict" },
      ],
    },
  ];
}

/** Otherwise a workload could wrap its packets, and no policy would see them. */
function noTunnels(): readonly DesiredRule[] {
  const udp = [...matchProtocol(PROTOCOL.udp), ...matchPorts("destination", VXLAN_PORT)];
  return [
    { ...drop("VXLAN of a workload"), expressions: [...udp, ...drop("").expressions] },
    { ...drop("IPIP of a workload"), expressions: [...matchProtocol(PROTOCOL.ipip), ...drop("").expressions] },
  ];
}

function neighbourDiscovery(): DesiredRule {
  const elements = NEIGHBOUR_DISCOVERY.map((type) => ({ key: Uint8Array.of(type) }));
  return {
    expressions: [
      ...matchProtocol(PROTOCOL.icmpv6),
      { kind: "payload", base: "transport", offset: 0, length: 1, to: 0 },
      { kind: "lookup", set: { key: ["icmpv6_type"], elements }, from: 0 },
      verdict({ kind: "accept" }),
    ],
  };
}

function drop(comment: string): DesiredRule {
  return { expressions: [{ kind: "counter" }, verdict({ kind: "drop" })], comment };
}
