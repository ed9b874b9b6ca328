/** Connections as packets on a link show them: counted per pair of ends, without anything that the host says. Pure. */
import type { CapturedPacket } from "../support/packet-capture.ts";

export interface CapturedConnection {
  readonly family: 4 | 6;
  readonly protocol: number;
  /** Who sent the first packet. */
  readonly source: string;
  readonly sourcePort: number;
  readonly destination: string;
  readonly destinationPort: number;
  readonly sent: Count;
  readonly received: Count;
}

export interface Count {
  readonly packets: number;
  /** With headers. */
  readonly bytes: number;
  /** Without. */
  readonly payload: number;
}

const ICMP_PROTOCOLS = [1, 58];
const ECHO_TYPES = [0, 8, 128, 129];
const WITH_PORTS = [6, 17];

/** Packets of TCP and UDP, and echo requests and replies. Errors belong to other connections, and neighbour discovery to none. */
export function connectionsIn(packets: readonly CapturedPacket[]): readonly CapturedConnection[] {
  const found = new Map<string, CapturedPacket[]>();
  for (const packet of packets.filter(isOfConnection)) {
    const ends = [`${packet.source} ${packet.sourcePort}`, `${packet.destination} ${packet.destinationPort}`];
    const key = [packet.protocol, ...ends.toSorted()].join(" ");
    const known = found.get(key);
    if (known === undefined) found.set(key, [packet]);
    else known.push(packet);
  }
  return Array.from(found.values(), connectionOf);
}

function isOfConnection({ protocol, icmp }: CapturedPacket): boolean {
  return WITH_PORTS.includes(protocol) || (ICMP_PROTOCOLS.includes(protocol) && ECHO_TYPES.includes(icmp?.type ?? -1));
}

function connectionOf(packets: readonly CapturedPacket[]): CapturedConnection {
  const [first] = packets;
  if (first === undefined) throw new Error("a connection without packets");
  const { family, protocol, source, sourcePort, destination, destinationPort } = first;
  const isSent = (packet: CapturedPacket) => packet.source === source && packet.sourcePort === sourcePort;
  return {
    ...{ family, protocol, source, sourcePort, destination, destinationPort },
    sent: countOf(packets.filter(isSent)),
    received: countOf(packets.filter((packet) => !isSent(packet))),
  };
}

function countOf(packets: readonly CapturedPacket[]): Count {
  const sum = (field: "bytes" | "payload") => packets.reduce((total, packet) => total + packet[field], 0);
  return { packets: packets.length, bytes: sum("bytes"), payload: sum("payload") };
}
