/**
 * The chains at which packets of the host's own interfaces enter the table. Without a host endpoint there are none.
 *
 *   prerouting -300   doNotTrack policies, incoming         output -300   doNotTrack policies, outgoing
 *   prerouting -150   preDNAT policies
 *   input 0           policies of packets to this host      output 0      policies of packets from this host
 *   forward -1        applyOnForward policies, incoming     forward 2     applyOnForward policies, outgoing
 *
 * Each has a verdict map: interface -> the chain of its policies. Interfaces that are not in it go to the chain of the
 * host endpoint "*" if there is one, except those of workloads and the loopback interface. A stage other than input and
 * output exists only while a policy applies at it. Why: docs/decisions/host-endpoint-stages.md. Pure.
 */
import type { Expression } from "../../linux/nftables/expression.ts";
import { loadPort, matchInterface, matchInterfacePrefix, type Side, verdict } from "../../linux/nftables/match.ts";
import type { BaseChain } from "../../linux/nftables/ruleset.ts";
import type { NftSet } from "../../linux/nftables/set.ts";
import { concatenate, portValue, protocolValue } from "../../linux/nftables/value.ts";
import { protocolNumber } from "../../model/protocols.ts";
import type { Direction } from "../effective-rule.ts";
import type { Point } from "../point.ts";
import type { DesiredChain, DesiredRule } from "../table/desired-table.ts";
import {
  baseChain,
  byInterface,
  chain,
  type InterfaceKey,
  knownConnections,
  neighbourDiscovery,
} from "./chain-parts.ts";
import { ACCEPTED, RESETTING } from "./packet-mark.ts";
import { acceptProbes, acceptTunnels, type OpenTunnels } from "./tunnel-packets.ts";

export const HOST_STAGES = [
  "untracked_in",
  "untracked_out",
  "pre_dnat",
  "input",
  "output",
  "forward_in",
  "forward_out",
] as const;
export type HostStage = (typeof HOST_STAGES)[number];

const HOOK: Readonly<Record<HostStage, Pick<BaseChain, "hook" | "priority">>> = {
  untracked_in: { hook: "prerouting", priority: -300 },
  untracked_out: { hook: "output", priority: -300 },
  pre_dnat: { hook: "prerouting", priority: -150 },
  input: { hook: "input", priority: 0 },
  output: { hook: "output", priority: 0 },
  forward_in: { hook: "forward", priority: -1 },
  forward_out: { hook: "forward", priority: 2 },
};

/** The direction of the policies: packets that come in through the interface are its ingress, also if forwarded. */
export function directionAt(stage: HostStage): Direction {
  return stage === "untracked_out" || stage === "output" || stage === "forward_out" ? "egress" : "ingress";
}

export interface HostPort {
  readonly protocol: string;
  readonly port: number;
}

/** Open whatever the policies say, so that a mistake does not lock the operator out. */
export interface Failsafes {
  readonly inbound: readonly HostPort[];
  readonly outbound: readonly HostPort[];
}

export interface StageOptions {
  readonly failsafes: Failsafes;
  /** The tunnels between nodes that pools need: the policies of hosts do not cut them. */
  readonly tunnels: OpenTunnels;
  /** How names of workloads' interfaces begin. */
  readonly prefixes: readonly string[];
  /** The chain of the host endpoint "*". */
  readonly otherInterfaces?: string | undefined;
  /** Connections that policy denies are ended: the resets of their ends pass. */
  readonly passesResets: boolean;
  /** The stages that exist: a packet that an earlier one accepted is not judged again. */
  readonly used: ReadonlySet<HostStage>;
}

export function stageMap(stage: HostStage): NftSet {
  return { name: mapName(stage), key: ["ifname"], data: "verdict" };
}

export function mapName(stage: HostStage): string {
  return `hosts_${stage}`;
}

/** The chain before the policies of every host endpoint at the stage. */
export function preludeName(stage: HostStage): string {
  return `host_${stage}_first`;
}

export function stageChainNames(stage: HostStage): readonly string[] {
  return [baseName(stage), preludeName(stage)];
}

export function stageChains(stage: HostStage, options: StageOptions): readonly DesiredChain[] {
  const { otherInterfaces, prefixes } = options;
  const key = directionAt(stage) === "ingress" ? "iifname" : "oifname";
  const others = otherInterfaces === undefined ? [] : toOtherInterfaces(key, otherInterfaces, prefixes);
  const first = stage === "pre_dnat" ? [{ expressions: ACCEPTED.clear }] : [];
  return [
    baseChain(baseName(stage), HOOK[stage], [...first, byInterface(key, mapName(stage)), ...others]),
    chain(preludeName(stage), preludeRules(stage, options), preludePoint(stage)),
  ];
}

/** Before connection tracking it drops nothing, and what it accepts has no label. */
function preludePoint(stage: HostStage): Point | undefined {
  if (stage === "untracked_in" || stage === "untracked_out") return undefined;
  return directionAt(stage) === "ingress" ? "host in" : "host out";
}

function baseName(stage: HostStage): string {
  return `host_${stage}`;
}

const LOOPBACK = "lo";

function toOtherInterfaces(key: InterfaceKey, target: string, prefixes: readonly string[]): readonly DesiredRule[] {
  const accept = verdict({ kind: "accept" });
  return [
    ...prefixes.map((prefix) => ({ expressions: [...matchInterfacePrefix(key, prefix), accept] })),
    { expressions: [...matchInterface(key, "equal", LOOPBACK), accept] },
    { expressions: [verdict({ kind: "goto", chain: target })] },
  ];
}

function preludeRules(
  stage: HostStage,
  { failsafes: { inbound, outbound }, tunnels, passesResets, used }: StageOptions,
): readonly DesiredRule[] {
  const direction = directionAt(stage);
  const otherEnd = direction === "ingress" ? "source" : "destination";
  const always = [neighbourDiscovery(), ...acceptTunnels(tunnels, otherEnd)];
  const key = direction === "ingress" ? "iifname" : "oifname";
  const probesBy = (answering: Side) => (tunnels.kinds.has("vxlan") ? acceptProbes(key, answering) : []);
  const [probes, replies] = [probesBy("destination"), probesBy("source")];
  const own = direction === "ingress" ? inbound : outbound;
  const other = direction === "ingress" ? outbound : inbound;
  const resets: readonly DesiredRule[] =
    passesResets && direction === "egress"
      ? [{ expressions: [...RESETTING.isSet, verdict({ kind: "accept" })], labels: "none" }]
      : [];
  switch (stage) {
    case "untracked_in":
    case "untracked_out":
      // Replies too: here no packet belongs to a connection yet, and half of one must not be untracked.
      return [
        ...[...always, ...resets],
        ...[...acceptPorts(own, "destination"), ...acceptPorts(other, "source"), ...probes, ...replies],
      ];
    case "pre_dnat":
      return [
        ...[...always.map(passedOn), ...connectionsAfter("untracked_in", used)],
        ...[...acceptPorts(inbound, "destination").map(passedOn), ...probes],
      ];
    case "input":
      return [
        ...always,
        ...connectionsAfter("untracked_in", used),
        ...acceptMarked(used),
        ...acceptPorts(inbound, "destination"),
        ...probes,
      ];
    case "output":
      return [
        ...always,
        ...resets,
        ...connectionsAfter("untracked_out", used),
        ...acceptPorts(outbound, "destination"),
        ...probes,
      ];
    case "forward_in":
      return [...connectionsAfter("untracked_in", used), ...acceptMarked(used)];
    case "forward_out":
      // What an earlier stage accepted, it accepted for the interface that the packet came from.
      return knownConnections();
  }
}

/** The next stage decides, and its rule is the one that the label names. */
function passedOn(rule: DesiredRule): DesiredRule {
  return { ...rule, labels: "none" };
}

/** Packets that the earlier stage accepted are not tracked. */
function connectionsAfter(earlier: HostStage, used: ReadonlySet<HostStage>): readonly DesiredRule[] {
  return knownConnections(used.has(earlier) ? { untracked: "accept" } : {});
}

function acceptMarked(used: ReadonlySet<HostStage>): readonly DesiredRule[] {
  if (!used.has("pre_dnat")) return [];
  return [{ expressions: [...ACCEPTED.isSet, verdict({ kind: "accept" })] }];
}

function acceptPorts(ports: readonly HostPort[], side: Side): readonly DesiredRule[] {
  const keys = new Map(
    ports.map(({ protocol, port }) => {
      const key = concatenate(protocolValue(protocolNumber(protocol) ?? 0), portValue(port));
      return [key.toHex(), { key }];
    }),
  );
  if (keys.size === 0) return [];
  const expressions: Expression[] = [
    { kind: "meta", key: "l4proto", to: 0 },
    loadPort(side, 1),
    { kind: "lookup", set: { key: ["inet_proto", "inet_service"], elements: [...keys.values()] }, from: 0 },
    { kind: "counter" },
    verdict({ kind: "accept" }),
  ];
  return [{ expressions, comment: `failsafe ${side} ports` }];
}
