/** The packets to try between two addresses: those that policies tell apart, and some that none mentions. Pure. */
import { type Address, formatAddress } from "../../../src/ip/address.ts";
import type { Packet } from "../../../src/policy/judge/packet.ts";
import type { PolicyResources } from "../../../src/policy/judge/resources.ts";

const TCP = 6;
const UDP = 17;
const ICMP = { 4: { protocol: 1, type: 8, reply: 0 }, 6: { protocol: 58, type: 128, reply: 129 } } as const;
/** Of a program that listens to nothing. */
const SOURCE_PORT = 40_000;
/** A port that no policy mentions. */
const UNMENTIONED = 9;
const MOST_PORTS = 3;

export type Probes = (source: Address, destination: Address) => readonly Packet[];

export function probesFor(resources: PolicyResources): Probes {
  const ports = [...mentionedPorts(resources)].slice(0, MOST_PORTS);
  return (source, destination) => {
    const between = { source, destination };
    const { protocol, type } = ICMP[source.family];
    const toPort = (number: number, port: number): Packet => ({
      ...between,
      ...{ protocol: number, sourcePort: SOURCE_PORT, destinationPort: port },
    });
    return [
      ...[...ports, UNMENTIONED].map((port) => toPort(TCP, port)),
      toPort(UDP, ports[0] ?? UNMENTIONED),
      { ...between, protocol, icmp: { type, code: 0 } },
    ];
  };
}

function mentionedPorts({ networkPolicies, globalNetworkPolicies }: PolicyResources): ReadonlySet<number> {
  const rules = [...networkPolicies, ...globalNetworkPolicies].flatMap(({ spec: { ingress = [], egress = [] } }) => [
    ...ingress,
    ...egress,
  ]);
  const ports = rules.flatMap(({ source, destination }) => [
    ...(destination?.ports ?? []),
    ...(destination?.notPorts ?? []),
    ...(source?.ports ?? []),
  ]);
  return new Set(ports.flatMap((port) => (typeof port === "number" ? [port] : [])));
}

export function replyTo({ source, destination, protocol, sourcePort, destinationPort, icmp }: Packet): Packet {
  return {
    ...{ source: destination, destination: source, protocol },
    ...(destinationPort === undefined ? {} : { sourcePort: destinationPort }),
    ...(sourcePort === undefined ? {} : { destinationPort: sourcePort }),
    ...(icmp === undefined ? {} : { icmp: { type: ICMP[source.family].reply, code: 0 } }),
  };
}

/** `TCP 80 (10.0.0.1 → 10.0.0.2)` */
export function titleOf({ protocol, destinationPort, source, destination }: Packet): string {
  const names: Readonly<Record<number, string>> = { [TCP]: "TCP", [UDP]: "UDP", 1: "ICMP", 58: "ICMPv6" };
  const what = [names[protocol] ?? `protocol ${protocol}`, ...(destinationPort === undefined ? [] : [destinationPort])];
  return `${what.join(" ")} (${formatAddress(source)} → ${formatAddress(destination)})`;
}
