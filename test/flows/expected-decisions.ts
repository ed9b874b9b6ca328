/**
 * What the judge says about the first packet of a connection at each point that it passes, as the comments of the rules that should
 * have decided. Pure.
 */
import type { Point } from "../../src/flows/flow-record.ts";
import { parseAddress } from "../../src/ip/address.ts";
import type { HostEndpoint } from "../../src/model/host-endpoint.ts";
import type { NodeAgentSettings } from "../../src/model/node-agent-configuration.ts";
import type { Direction } from "../../src/policy/effective-rule.ts";
import { judgeInterface } from "../../src/policy/judge/host-judge.ts";
import { judge, type Reason } from "../../src/policy/judge/judge.ts";
import type { Packet } from "../../src/policy/judge/packet.ts";
import type { PolicyResources } from "../../src/policy/judge/resources.ts";

export interface ExpectedDecision {
  readonly point: Point;
  readonly verdict: "allow" | "deny";
  /** Absent: no rule had to decide, so there may be a decision at this point, or none. */
  readonly comment?: string;
}

/** A connection as its packets pass the host: after the translation of its destination. */
export interface JudgedConnection {
  readonly packet: Packet;
  /** `x/a`, `host`, `outside`, `side`. */
  readonly from: string;
  readonly to: string;
}

export interface JudgedWorld {
  readonly resources: PolicyResources;
  readonly settings: NodeAgentSettings;
}

/** Up to the first that denies. */
export function expectedDecisions(connection: JudgedConnection, world: JudgedWorld): readonly ExpectedDecision[] {
  const all = [
    ...hostDecision("host in", connection, world),
    ...workloadDecision("workload egress", connection, world),
    ...workloadDecision("workload ingress", connection, world),
    ...hostDecision("host out", connection, world),
  ];
  const denied = all.findIndex(({ verdict }) => verdict === "deny");
  return denied < 0 ? all : all.slice(0, denied + 1);
}

function workloadDecision(
  point: "workload egress" | "workload ingress",
  { packet, from, to }: JudgedConnection,
  { resources }: JudgedWorld,
): readonly ExpectedDecision[] {
  const direction = point === "workload egress" ? "egress" : "ingress";
  const name = direction === "egress" ? from : to;
  const endpoint = resources.endpoints.find(({ metadata, spec }) => `${metadata.namespace}/${spec.pod}` === name);
  // What the host itself sends is not judged at its workloads.
  if (endpoint === undefined || (direction === "ingress" && from === "host")) return [];
  const { verdict, reason } = judge(packet, endpoint, direction, resources);
  return [{ point, verdict, comment: commentOf(reason, direction) }];
}

function hostDecision(
  point: "host in" | "host out",
  { packet, from, to }: JudgedConnection,
  { resources, settings }: JudgedWorld,
): readonly ExpectedDecision[] {
  const direction = point === "host in" ? "ingress" : "egress";
  const [near, far] = direction === "ingress" ? [from, to] : [to, from];
  const endpoint = resources.hostEndpoints.find(({ spec }) => spec.interfaceName === INTERFACES[near]);
  if (endpoint === undefined || INTERFACES[near] === undefined) return [];
  const isForwarded = far !== "host";
  const judged = { packet, endpoint: endpoint satisfies HostEndpoint, direction, isForwarded, settings } as const;
  const { verdict, stage, evaluated } = judgeInterface(judged, resources);
  if (stage === "failsafe") return [{ point, verdict, comment: `failsafe ${FAILSAFE_SIDE} ports` }];
  const reason = evaluated.at(-1)?.reason;
  return [{ point, verdict, ...(reason === undefined ? {} : { comment: commentOf(reason, direction) }) }];
}

const INTERFACES: Readonly<Record<string, string>> = { outside: "out0", side: "side0" };
const FAILSAFE_SIDE = "destination";

function commentOf(reason: Reason, direction: Direction): string {
  switch (reason.kind) {
    case "rule": {
      const { namespace, name } = reason.policy.metadata;
      return `${namespace === undefined ? name : `${namespace}/${name}`} ${direction} ${reason.index}`;
    }
    case "tier default":
      return `tier ${reason.tier} ${direction} default`;
    case "profile":
      return `profile ${direction}`;
    case "no profile allows it":
      return `no profile allows it, ${direction}`;
  }
}

export interface PacketOf {
  readonly protocol: number;
  readonly source: string;
  readonly sourcePort: number;
  readonly destination: string;
  readonly destinationPort: number;
}

/** `before`: its destination before it was translated. */
export function judgedPacket(of: PacketOf, before?: { readonly address: string; readonly port: number }): Packet {
  const [source, destination] = [addressIn(of.source), addressIn(of.destination)];
  const isIcmp = of.protocol === 1 || of.protocol === 58;
  const packet: Packet = {
    ...{ source, destination, protocol: of.protocol },
    ...(isIcmp
      ? { icmp: { type: of.protocol === 1 ? 8 : 128, code: 0 } }
      : { sourcePort: of.sourcePort, destinationPort: of.destinationPort }),
  };
  if (before === undefined) return packet;
  return { ...packet, beforeNat: { ...packet, destination: addressIn(before.address), destinationPort: before.port } };
}

function addressIn(text: string) {
  const address = parseAddress(text);
  if (address === undefined) throw new Error(`not an address: ${text}`);
  return address;
}
