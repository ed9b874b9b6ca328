/** A packet as the kernel's instructions see it: the parts of its headers that rules read. For tests. */
import { addressBytes, type Family } from "../../../src/ip/address.ts";
import { portValue } from "../../../src/linux/nftables/value.ts";
import type { Packet } from "../../../src/policy/judge/packet.ts";

export interface PacketBytes {
  readonly family: Family;
  readonly protocol: number;
  readonly network: Uint8Array;
  readonly transport: Uint8Array;
}

const ADDRESSES_AT = { 4: 12, 6: 8 } as const;

export function packetBytes(packet: Packet): PacketBytes {
  const { source, destination, protocol, sourcePort, destinationPort, icmp } = packet;
  const { family } = source;
  const addresses = [...addressBytes(source), ...addressBytes(destination)];
  const network = Uint8Array.from([...new Array<number>(ADDRESSES_AT[family]).fill(0), ...addresses]);
  const transport =
    icmp === undefined
      ? Uint8Array.from([...portValue(sourcePort ?? 0), ...portValue(destinationPort ?? 0)])
      : Uint8Array.of(icmp.type, icmp.code, 0, 0);
  return { family, protocol, network, transport };
}
