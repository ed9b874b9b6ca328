/** A draft of a policy that allows the packets of a log: one rule for what comes from, or goes to, the same addresses. Pure. */
import { addressBits, formatAddress } from "../../ip/address.ts";
import { type GlobalNetworkPolicy, globalNetworkPolicy } from "../../model/global-network-policy.ts";
import type { PolicyRule } from "../../model/policy-rule.ts";
import type { Direction } from "../../policy/effective-rule.ts";
import type { LoggedPacket } from "./log-lines.ts";

export interface DraftOptions {
  readonly name: string;
  readonly selector: string;
}

/** The same packets in any order and number give the same policy. */
export function draftPolicy(packets: readonly LoggedPacket[], { name, selector }: DraftOptions): GlobalNetworkPolicy {
  return globalNetworkPolicy.make(
    { name },
    {
      ...{ tier: "default", order: 100, selector, types: ["Ingress", "Egress"] },
      ...{ ingress: rulesOf(packets, "ingress"), egress: rulesOf(packets, "egress") },
      ...{ doNotTrack: false, preDNAT: false, applyOnForward: false },
    },
  );
}

function rulesOf(packets: readonly LoggedPacket[], direction: Direction): PolicyRule[] {
  const own = packets.filter((packet) => packet.direction === direction);
  const services = [...Map.groupBy(own, serviceKey)].toSorted(byKey).map(([, members]) => ({
    packet: members[0],
    nets: [...new Set(members.map(netOf))].toSorted(),
  }));
  // Ports of one protocol that the same peers use are one rule.
  const groups = Map.groupBy(services, ({ packet, nets }) =>
    packet?.destinationPort === undefined
      ? serviceKey(packet)
      : `${packet.peer.family} ${packet.protocol} ${nets.join(" ")}`,
  );
  return [...groups.values()].flatMap((members) => {
    const [{ packet, nets } = { packet: undefined, nets: [] }] = members;
    if (packet === undefined) return [];
    const ports = members.flatMap((each) => each.packet?.destinationPort ?? []).toSorted((left, right) => left - right);
    return [ruleOf(packet, nets, ports)];
  });
}

function ruleOf(packet: LoggedPacket, nets: string[], ports: number[]): PolicyRule {
  const { direction, protocol, icmpType: type, icmpCode: code } = packet;
  const peer = { nets };
  const withPorts = ports.length === 0 ? undefined : { ports };
  const icmp = type === undefined || type > 254 ? undefined : { type, ...(code === undefined ? {} : { code }) };
  const destination = direction === "ingress" ? withPorts : { ...peer, ...withPorts };
  return {
    action: "Allow",
    protocol: PROTOCOLS[protocol] ?? protocol,
    ...(icmp === undefined ? {} : { icmp }),
    ...(direction === "ingress" ? { source: peer } : {}),
    ...(destination === undefined ? {} : { destination }),
  };
}

const PROTOCOLS: Readonly<Record<number, string>> = { 1: "ICMP", 6: "TCP", 17: "UDP", 58: "ICMPv6", 132: "SCTP" };

/** By family and protocol, and by numbers as numbers. */
function serviceKey(packet: LoggedPacket | undefined): string {
  if (packet === undefined) return "";
  const { peer, protocol, destinationPort, icmpType, icmpCode } = packet;
  const digits = [protocol, destinationPort, icmpType, icmpCode].map((number) => String(number ?? "").padStart(5, "0"));
  return [peer.family, ...digits].join(" ");
}

function byKey([left]: readonly [string, unknown], [right]: readonly [string, unknown]): number {
  return left < right ? -1 : 1;
}

function netOf({ peer }: LoggedPacket): string {
  return `${formatAddress(peer)}/${addressBits(peer.family)}`;
}
